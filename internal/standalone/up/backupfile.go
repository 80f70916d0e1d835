package up

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
	"time"
)

// A backup is an archive that contains a manifest, an etcd snapshot, and the files that are needed to
// use the snapshot. Invariants: a backup file either is complete under its name or does not exist. No
// file in an archive is used before the whole archive is verified. Only the owner can read a backup,
// because it contains every cluster's credentials.

// backupFormatVersion is the format version of the archives that this program writes.
const backupFormatVersion = 1

const (
	manifestName = "manifest.json"
	// maxManifestBytes limits a manifest's size, because the archive is not verified yet when its
	// manifest is read.
	maxManifestBytes = 4 << 20
	unfinishedSuffix = ".new"
)

// backupManifest describes a backup. It is the archive's first file.
type backupManifest struct {
	// Format is the archive's format version.
	Format int `json:"format"`
	// Time is the time of the snapshot.
	Time time.Time `json:"time"`
	// Karmada is the version of the program that wrote the backup. Kubernetes and Etcd are the versions
	// of Kubernetes and etcd in that program.
	Karmada    string `json:"karmada"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	// Revision is the etcd revision of the last write in the snapshot. Keys is the number of etcd keys
	// in the snapshot. Hash is the checksum of the snapshot's content.
	Revision int64  `json:"revision"`
	Keys     int    `json:"keys"`
	Hash     uint32 `json:"hash"`
	// Clusters are the names of the member clusters.
	Clusters []string `json:"clusters"`
	// Files describes the files that follow the manifest, in archive order.
	Files []backupFile `json:"files"`
}

// backupFile describes a file in the archive.
type backupFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// backupSource is a file to add to an archive.
type backupSource struct {
	// Name is the name in the archive. Path is the file's path on disk.
	Name, Path string
}

var (
	// ErrDamaged means that a file is not a backup, or was changed after it was written.
	ErrDamaged = errors.New("the file is damaged or is not a backup")
	// ErrExists means that a file with the backup's name already exists.
	ErrExists = errors.New("a file of that name exists already")
)

// writeBackupFile writes an archive. After an error, there is no file at path.
func writeBackupFile(path string, manifest backupManifest, sources []backupSource) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("writing %s: %w: choose another name", path, errors.Join(ErrExists, err))
	}
	manifest.Files = nil
	for _, source := range sources {
		file, err := describeFile(source)
		if err != nil {
			return err
		}
		manifest.Files = append(manifest.Files, file)
	}
	unfinishedPath := path + unfinishedSuffix
	file, err := os.OpenFile(unfinishedPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(unfinishedPath)
		}
	}()
	if err := errors.Join(writeArchive(file, manifest, sources), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	// Link instead of renaming, because a rename would replace a file that was created at path in the
	// meantime.
	if err := os.Link(unfinishedPath, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return errors.Join(os.Remove(unfinishedPath), syncDir(filepath.Dir(path)))
}

func describeFile(source backupSource) (backupFile, error) {
	content, err := os.Open(source.Path)
	if err != nil {
		return backupFile{}, fmt.Errorf("reading %s: %w", source.Name, err)
	}
	defer func() { _ = content.Close() }()
	sum := sha256.New()
	size, err := io.Copy(sum, content)
	if err != nil {
		return backupFile{}, fmt.Errorf("reading %s: %w", source.Name, err)
	}
	return backupFile{Name: source.Name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

func writeArchive(to io.Writer, manifest backupManifest, sources []backupSource) error {
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	encoded, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	writeHeader := func(name string, size int64) error {
		return archive.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: manifest.Time, Typeflag: tar.TypeReg})
	}
	if err := writeHeader(manifestName, int64(len(encoded))); err != nil {
		return err
	}
	if _, err := archive.Write(encoded); err != nil {
		return err
	}
	for i, source := range sources {
		if err := writeHeader(source.Name, manifest.Files[i].Size); err != nil {
			return err
		}
		if err := copyFileTo(archive, source.Path); err != nil {
			return fmt.Errorf("%s: %w", source.Name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func copyFileTo(to io.Writer, path string) error {
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
