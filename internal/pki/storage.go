package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Suffixes of file names.
const (
	CertSuffix = ".crt"
	KeySuffix  = ".key"
)

// Files stores certificates and keys in PEM. A file's name is its certificate's name and one of the
// suffixes.
type Files interface {
	// ReadFile returns the file's content. If the file does not exist, the error is fs.ErrNotExist.
	ReadFile(file string) ([]byte, error)
	// WriteFile creates or replaces a file.
	WriteFile(file string, data []byte) error
	// Location describes where the file is, for messages.
	Location(file string) string
}

// Dir is a directory that contains certificates and keys.
type Dir struct {
	Path string
	// Now returns the current time. Nil selects the system clock.
	Now func() time.Time
}

// CertFile returns the path of the certificate with the given name.
func (d Dir) CertFile(name string) string { return d.Location(name + CertSuffix) }

// KeyFile returns the path of the private key with the given name.
func (d Dir) KeyFile(name string) string { return d.Location(name + KeySuffix) }

// Location returns the file's path.
func (d Dir) Location(file string) string { return filepath.Join(d.Path, file) }

// ReadFile returns the file's content.
func (d Dir) ReadFile(file string) ([]byte, error) { return os.ReadFile(d.Location(file)) }

// WriteFile replaces the file atomically. Only the owner can read keys.
func (d Dir) WriteFile(file string, data []byte) error {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return fmt.Errorf("creating certificate directory: %w", err)
	}
	mode := os.FileMode(0o644)
	if strings.HasSuffix(file, KeySuffix) {
		mode = 0o600
	}
	return WriteFile(d.Location(file), data, mode)
}

// store returns a Store that uses this directory's files.
func (d Dir) store() Store { return Store{Files: d, Now: d.Now} }

// EnsureAuthority does the same as Store.EnsureAuthority.
func (d Dir) EnsureAuthority(name, commonName string) (*Authority, error) {
	return d.store().EnsureAuthority(name, commonName)
}

// EnsureKey does the same as Store.EnsureKey.
func (d Dir) EnsureKey(name string) error { return d.store().EnsureKey(name) }

// RenewalTime returns the time at which the certificate with the given name must be issued again.
func (d Dir) RenewalTime(name string) (time.Time, error) { return d.store().RenewalTime(name) }

// Memory stores files in memory. It maps file names to contents.
type Memory map[string][]byte

// ReadFile returns the file's content.
func (m Memory) ReadFile(file string) ([]byte, error) {
	data, ok := m[file]
	if !ok {
		return nil, fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	}
	return data, nil
}

// WriteFile replaces the file's content.
func (m Memory) WriteFile(file string, data []byte) error {
	m[file] = data
	return nil
}

// Location returns the file's name.
func (m Memory) Location(file string) string { return file }

// WriteFile replaces the file atomically. After a crash, even of the machine, the file has either the
// complete old or the complete new content.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	next := path + ".new"
	if err := writeSynced(next, data, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// writeSynced writes a file and flushes it to disk.
func writeSynced(path string, data []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
