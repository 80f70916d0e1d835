package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path"
)

// writeImage writes an image with one program, which is also its entry point, as an OCI archive that
// `ctr images import` reads.
func writeImage(file, reference, architecture, program string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading the program of image %s: %w", reference, err)
	}
	layer, err := pack(map[string][]byte{path.Base(pauseProgram): binary}, []string{path.Base(pauseProgram)})
	if err != nil {
		return err
	}
	blobs := imageBlobs{}
	layerBlob := blobs.add("application/vnd.oci.image.layer.v1.tar", layer)
	config := blobs.addJSON("application/vnd.oci.image.config.v1+json", map[string]any{
		"os": "linux", "architecture": architecture, "config": map[string]any{"Entrypoint": []string{pauseProgram}, "User": "65535:65535"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerBlob.Digest}},
	})
	manifest := blobs.addJSON("application/vnd.oci.image.manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []descriptor{layerBlob},
	})
	manifest.Annotations = map[string]string{"io.containerd.image.name": reference}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`),
		"index.json": encode(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})}
	order := []string{"oci-layout", "index.json"}
	for name, content := range blobs {
		files[name] = content
		order = append(order, name)
	}
	archive, err := pack(files, order)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		return fmt.Errorf("writing image %s: %w", reference, err)
	}
	return nil
}

// descriptor refers to a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// imageBlobs are the blobs of an archive by the names of their files.
type imageBlobs map[string][]byte

func (b imageBlobs) add(mediaType string, content []byte) descriptor {
	digest := fmt.Sprintf("%x", sha256.Sum256(content))
	b["blobs/sha256/"+digest] = content
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
}

func (b imageBlobs) addJSON(mediaType string, value any) descriptor {
	return b.add(mediaType, encode(value))
}

// encode encodes a value that consists only of types that JSON has.
func encode(value any) []byte {
	data, _ := json.Marshal(value)
	return data
}

func pack(files map[string][]byte, order []string) ([]byte, error) {
	packed := &bytes.Buffer{}
	writer := tar.NewWriter(packed)
	for _, name := range order {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := writer.Write(files[name]); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return packed.Bytes(), nil
}
