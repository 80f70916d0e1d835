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
)

// Open is a backup whose manifest was read.
type Open struct {
	Manifest Manifest

	path    string
	file    *os.File
	content io.Reader
	archive *tar.Reader
}

// OpenFile reads the manifest of a backup. The backup must be closed.
func OpenFile(path string) (_ *Open, err error) {
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
		return nil, damaged(path, err)
	}
	o := &Open{path: path, file: file, content: content, archive: tar.NewReader(content)}
	header, err := o.archive.Next()
	if err != nil {
		return nil, damaged(path, err)
	}
	if header.Name != manifestName || header.Size > manifestLimit {
		return nil, damaged(path, errors.New("it does not begin with a manifest"))
	}
	if err := json.NewDecoder(o.archive).Decode(&o.Manifest); err != nil {
		return nil, damaged(path, fmt.Errorf("its manifest: %w", err))
	}
	return o, nil
}

// Close closes the file.
func (o *Open) Close() error { return o.file.Close() }

// Extract writes the files of the archive below a directory, and checks them against
// the manifest. What it has written before an error must not be used.
func (o *Open) Extract(into string) error {
	for _, want := range o.Manifest.Files {
		header, err := o.archive.Next()
		if err != nil {
			return damaged(o.path, fmt.Errorf("%q: %w", want.Name, err))
		}
		if header.Name != want.Name || header.Size != want.Size || header.Typeflag != tar.TypeReg || !filepath.IsLocal(want.Name) {
			return damaged(o.path, fmt.Errorf("it holds %q (%d bytes) where its manifest says %q (%d bytes)", header.Name, header.Size, want.Name, want.Size))
		}
		if err := o.extract(want, filepath.Join(into, want.Name)); err != nil {
			return err
		}
	}
	if _, err := o.archive.Next(); !errors.Is(err, io.EOF) {
		return damaged(o.path, errors.New("it holds more than its manifest says, or its end is missing"))
	}
	// The checksum of the whole is behind the end of the archive.
	if _, err := io.Copy(io.Discard, o.content); err != nil {
		return damaged(o.path, err)
	}
	return nil
}

func (o *Open) extract(want File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	sum := sha256.New()
	content := &source{Reader: o.archive}
	_, err = io.Copy(io.MultiWriter(file, sum), content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		if content.err != nil {
			return damaged(o.path, fmt.Errorf("%q: %w", want.Name, content.err))
		}
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
		return damaged(o.path, fmt.Errorf("%q has the checksum %s, and %s by its manifest", want.Name, got, want.SHA256))
	}
	return nil
}

// source remembers why reading failed, to tell a damaged archive from a full disk.
type source struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(into []byte) (int, error) {
	n, err := s.Reader.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func damaged(path string, cause error) error {
	return fmt.Errorf("%s: %w: %w: use another one, `karmada backup` writes them", path, ErrDamaged, cause)
}
