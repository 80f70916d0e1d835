package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestArchiveIsComplete follows the references of an archive, from its index to the program.
func TestArchiveIsComplete(t *testing.T) {
	program, archive := filepath.Join(t.TempDir(), "pause"), filepath.Join(t.TempDir(), "pause.tar")
	if err := os.WriteFile(program, []byte("binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeImage(archive, pauseImage, "amd64", program); err != nil {
		t.Fatal(err)
	}
	files := readArchive(t, archive)
	index := struct{ Manifests []descriptor }{}
	decode(t, files["index.json"], &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations["io.containerd.image.name"] != pauseImage {
		t.Fatalf("the index is %+v", index)
	}
	manifest := struct {
		Config descriptor
		Layers []descriptor
	}{}
	decode(t, blob(t, files, index.Manifests[0]), &manifest)
	config := struct {
		Config struct{ Entrypoint []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}{}
	decode(t, blob(t, files, manifest.Config), &config)
	if len(manifest.Layers) != 1 || config.RootFS.DiffIDs[0] != manifest.Layers[0].Digest || config.Config.Entrypoint[0] != pauseProgram {
		t.Fatalf("the manifest is %+v, the configuration is %+v", manifest, config)
	}
	layer := filepath.Join(t.TempDir(), "layer.tar")
	if err := os.WriteFile(layer, blob(t, files, manifest.Layers[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := string(readArchive(t, layer)["program"]); got != "binary" {
		t.Errorf("the program is %q", got)
	}
}

func readArchive(t *testing.T, path string) map[string][]byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	files := map[string][]byte{}
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

// blob returns the content to which a descriptor refers.
func blob(t *testing.T, files map[string][]byte, d descriptor) []byte {
	t.Helper()
	content := files["blobs/sha256/"+d.Digest[len("sha256:"):]]
	if len(content) != d.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(content)) != d.Digest {
		t.Fatalf("the content of %+v is %q", d, content)
	}
	return content
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
}
