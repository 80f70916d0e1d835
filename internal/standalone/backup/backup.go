// Package backup answers "what is in the file of a backup, and can this program read
// it?": an archive with a manifest, a snapshot of etcd, and the files without which the
// snapshot is of no use.
//
// Invariants: a file is complete under its name or not there. Nothing of an archive is
// used before all of it was checked. What a backup holds can be read by its owner only:
// it contains the credentials of every cluster.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Format is the version of the archive that this program writes.
const Format = 1

const (
	manifestName = "manifest.json"
	// manifestLimit bounds what is read before anything is known of a file.
	manifestLimit = 4 << 20
	unfinished    = ".new"
)

// Manifest describes a backup. It is the first file of the archive.
type Manifest struct {
	// Format is the version of the archive.
	Format int `json:"format"`
	// Time is when the snapshot was taken.
	Time time.Time `json:"time"`
	// Karmada, Kubernetes and Etcd are the versions that wrote it.
	Karmada    string `json:"karmada"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	// Revision is that of the last write in the snapshot, Keys how many keys it holds,
	// Hash a checksum of its content.
	Revision int64  `json:"revision"`
	Keys     int    `json:"keys"`
	Hash     uint32 `json:"hash"`
	// Clusters are the names of the member clusters.
	Clusters []string `json:"clusters"`
	// Files are the other files of the archive, in their order.
	Files []File `json:"files"`
}

// File is a file of the archive.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Source is a file that goes into an archive.
type Source struct {
	// Name is its name in the archive, Path where it is now.
	Name, Path string
}

var (
	// ErrDamaged says that a file is no backup, or not the one that was written.
	ErrDamaged = errors.New("the backup is damaged or is none")
	// ErrExists says that there is a file of that name.
	ErrExists = errors.New("there is a file of that name already")
)

// Write writes an archive. Its file is there, complete, or not at all.
func Write(path string, manifest Manifest, sources []Source) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("writing %s: %w: name another", path, errors.Join(ErrExists, err))
	}
	manifest.Files = nil
	for _, source := range sources {
		file, err := describe(source)
		if err != nil {
			return err
		}
		manifest.Files = append(manifest.Files, file)
	}
	next := path + unfinished
	file, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(next)
		}
	}()
	if err := errors.Join(pack(file, manifest, sources), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	// A link, unlike a rename, replaces no file that came meanwhile.
	if err := os.Link(next, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return errors.Join(os.Remove(next), syncDir(filepath.Dir(path)))
}

func describe(source Source) (File, error) {
	content, err := os.Open(source.Path)
	if err != nil {
		return File{}, fmt.Errorf("reading %s: %w", source.Name, err)
	}
	defer func() { _ = content.Close() }()
	sum := sha256.New()
	size, err := io.Copy(sum, content)
	if err != nil {
		return File{}, fmt.Errorf("reading %s: %w", source.Name, err)
	}
	return File{Name: source.Name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

func pack(to io.Writer, manifest Manifest, sources []Source) error {
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	encoded, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	header := func(name string, size int64) error {
		return archive.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: manifest.Time, Typeflag: tar.TypeReg})
	}
	if err := header(manifestName, int64(len(encoded))); err != nil {
		return err
	}
	if _, err := archive.Write(encoded); err != nil {
		return err
	}
	for i, source := range sources {
		if err := header(source.Name, manifest.Files[i].Size); err != nil {
			return err
		}
		if err := copyFrom(archive, source.Path); err != nil {
			return fmt.Errorf("%s: %w", source.Name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func copyFrom(to io.Writer, path string) error {
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, content)
	return errors.Join(err, content.Close())
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// has reports whether the manifest lists a file.
func (m Manifest) has(name string) bool {
	return slices.ContainsFunc(m.Files, func(file File) bool { return file.Name == name })
}
