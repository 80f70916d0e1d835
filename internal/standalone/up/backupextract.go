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
)

// openBackup is an open backup file whose manifest has been read.
type openBackup struct {
	Manifest backupManifest

	path    string
	file    *os.File
	content io.Reader
	archive *tar.Reader
}

// openBackupFile opens a backup and reads its manifest. The caller must close it.
func openBackupFile(path string) (_ *openBackup, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the backup: %w", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	content, err := gzip.NewReader(file)
	if err != nil {
		return nil, damagedError(path, err)
	}
	o := &openBackup{path: path, file: file, content: content, archive: tar.NewReader(content)}
	header, err := o.archive.Next()
	if err != nil {
		return nil, damagedError(path, err)
	}
	if header.Name != manifestName || header.Size > maxManifestBytes {
		return nil, damagedError(path, errors.New("the archive does not start with a manifest"))
	}
	if err := json.NewDecoder(o.archive).Decode(&o.Manifest); err != nil {
		return nil, damagedError(path, fmt.Errorf("decoding the manifest: %w", err))
	}
	return o, nil
}

// Close closes the file.
func (o *openBackup) Close() error { return o.file.Close() }

// Extract writes the archive's files to the directory into, and compares them with the manifest. After
// an error, the written files must not be used.
func (o *openBackup) Extract(into string) error {
	for _, want := range o.Manifest.Files {
		header, err := o.archive.Next()
		if err != nil {
			return damagedError(o.path, fmt.Errorf("%q: %w", want.Name, err))
		}
		if header.Name != want.Name || header.Size != want.Size || header.Typeflag != tar.TypeReg || !filepath.IsLocal(want.Name) {
			return damagedError(o.path, fmt.Errorf("the archive has %q (%d bytes) where the manifest lists %q (%d bytes)", header.Name, header.Size,
				want.Name, want.Size))
		}
		if err := o.extractFile(want, filepath.Join(into, want.Name)); err != nil {
			return err
		}
	}
	if _, err := o.archive.Next(); !errors.Is(err, io.EOF) {
		return damagedError(o.path, errors.New("the archive has more files than the manifest lists, or is cut off"))
	}
	// Read the rest, because the gzip checksum, which must be verified, comes after the end of the tar
	// archive.
	if _, err := io.Copy(io.Discard, o.content); err != nil {
		return damagedError(o.path, err)
	}
	return nil
}

func (o *openBackup) extractFile(listedFile backupFile, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	sum := sha256.New()
	content := &trackingReader{Reader: o.archive}
	_, err = io.Copy(io.MultiWriter(file, sum), content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		if content.lastError != nil {
			return damagedError(o.path, fmt.Errorf("%q: %w", listedFile.Name, content.lastError))
		}
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != listedFile.SHA256 {
		return damagedError(o.path, fmt.Errorf("%q has the checksum %s, and the manifest has %s", listedFile.Name, got, listedFile.SHA256))
	}
	return nil
}

// trackingReader stores the error of the last read. If extracting fails, this error shows whether the
// archive is damaged or, for example, the disk is full.
type trackingReader struct {
	io.Reader
	lastError error
}

// Read implements io.Reader.
func (t *trackingReader) Read(into []byte) (int, error) {
	n, err := t.Reader.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		t.lastError = err
	}
	return n, err
}

func damagedError(path string, cause error) error {
	return fmt.Errorf("%s: %w: %w: use another backup file, as written by `karmada backup`", path, ErrDamaged, cause)
}
