package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	repository = "localhost/karmada/karmada"
	source     = "https://github.com/karmada-io/karmada"
	// defaultPath lets containers call the programs by their names.
	defaultPath = "/bin"
)

// content is what the images for all platforms have in common.
type content struct {
	version, revision string
	// created is the modification time of all files and the image's creation time.
	created time.Time
	// files are the layer's entries without the binary.
	files []file
}

// writtenImage is an image on disk.
type writtenImage struct {
	path   string
	digest v1.Hash
	// bytes is the compressed size: the size of all blobs.
	bytes int64
}

// write writes an archive for each platform and a layout for all platforms to a directory. binaries maps
// architectures to the binaries' paths.
func (c content) write(platforms []v1.Platform, binaries map[string]string, out string) ([]writtenImage, error) {
	// The library accepts the registry localhost only with a port, so this validates only the version.
	if _, err := name.NewTag(c.reference(), name.WeakValidation); err != nil {
		return nil, fmt.Errorf("the version %q: %w", c.version, err)
	}
	work, err := os.MkdirTemp("", "karmada-image-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for layers: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(out, 0o755); err != nil { // to be published
		return nil, fmt.Errorf("creating the directory of the archives: %w", err)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var all []writtenImage
	for _, platform := range platforms {
		image, err := c.image(platform, binaries[platform.Architecture], work)
		if err != nil {
			return nil, err
		}
		archived, err := c.writeArchive(image, platform, work, out)
		if err != nil {
			return nil, err
		}
		all = append(all, archived)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	combined, err := c.writeLayout(index, out)
	return append(all, combined), err
}

func (c content) reference() string { return repository + ":" + c.version }

// annotations returns the annotations that name the image for tools that load it.
func (c content) annotations() map[string]string {
	return map[string]string{
		"io.containerd.image.name":          c.reference(),
		"org.opencontainers.image.ref.name": c.version,
	}
}

// image returns the image for one platform. Its layer stays in the directory work.
func (c content) image(platform v1.Platform, binary, work string) (v1.Image, error) {
	path := filepath.Join(work, platform.Architecture+".tar.gz")
	files := append([]file{{name: "bin/karmada", mode: 0o755, source: binary}}, c.files...)
	if err := writeLayer(path, files, c.created); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("reading the layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: c.created}, CreatedBy: "make images"},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the image: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant, config.Created = platform.OS, platform.Architecture, platform.Variant,
		v1.Time{Time: c.created}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", nonroot, nonroot), WorkingDir: "/", Env: []string{"PATH=" + defaultPath, "HOME=/tmp"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "karmada",
			"org.opencontainers.image.version":  c.version,
			"org.opencontainers.image.revision": c.revision,
			"org.opencontainers.image.source":   source,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// writeArchive writes one platform's OCI archive.
func (c content) writeArchive(image v1.Image, platform v1.Platform, work, out string) (writtenImage, error) {
	dir := filepath.Join(work, platform.Architecture)
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return writtenImage{}, fmt.Errorf("writing the image: %w", err)
	}
	if err := at.AppendImage(image, layout.WithAnnotations(c.annotations()), layout.WithPlatform(platform)); err != nil {
		return writtenImage{}, fmt.Errorf("writing the image: %w", err)
	}
	path := filepath.Join(out, fmt.Sprintf("karmada-%s-%s-%s.tar", c.version, platform.OS, platform.Architecture))
	if err := c.archive(dir, path); err != nil {
		return writtenImage{}, err
	}
	digest, err := image.Digest()
	if err != nil {
		return writtenImage{}, fmt.Errorf("computing the digest: %w", err)
	}
	size, err := directorySize(filepath.Join(dir, "blobs"))
	return writtenImage{path: path, digest: digest, bytes: size}, err
}

// writeLayout writes the OCI layout for all platforms.
func (c content) writeLayout(index v1.ImageIndex, out string) (writtenImage, error) {
	dir := filepath.Join(out, "karmada-"+c.version+"-oci")
	if err := os.RemoveAll(dir); err != nil { // blobs of an earlier run would stay
		return writtenImage{}, fmt.Errorf("replacing the layout: %w", err)
	}
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return writtenImage{}, fmt.Errorf("writing the layout: %w", err)
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(c.annotations())); err != nil {
		return writtenImage{}, fmt.Errorf("writing the layout: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return writtenImage{}, fmt.Errorf("computing the digest: %w", err)
	}
	size, err := directorySize(filepath.Join(dir, "blobs"))
	return writtenImage{path: dir, digest: digest, bytes: size}, err
}

// archive writes a directory's files to a tar file.
func (c content) archive(dir, path string) (err error) {
	var files []file
	err = filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		relative, err := filepath.Rel(dir, at)
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			files = append(files, file{name: filepath.ToSlash(relative) + "/", mode: 0o755})
		default:
			files = append(files, file{name: filepath.ToSlash(relative), mode: 0o644, source: at})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the image: %w", err)
	}
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return writeTar(out, files, c.created)
}

func directorySize(dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measuring the image: %w", err)
	}
	return size, nil
}
