package certs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/pki"
)

// maxFileSize is the maximum size of a certificate or key file in bytes, which is also the maximum size of a Secret.
const maxFileSize = 1 << 20

// readDir reads the certificates and keys in a directory.
func readDir(dir string) (certificates.Set, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the directory of --karmada-pki: %w", err)
	}
	set := certificates.Set{}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !slices.Contains([]string{pki.CertSuffix, pki.KeySuffix}, filepath.Ext(name)) {
			continue
		}
		if set[name], err = readFile(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("reading the certificates in --karmada-pki: %w", err)
		}
	}
	for name := range set {
		if strings.HasSuffix(name, pki.CertSuffix) {
			return set, nil
		}
	}
	return nil, fmt.Errorf("directory %s contains no certificates (*%s): set --karmada-pki to the right directory", dir, pki.CertSuffix)
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: move it to another directory", path)
	case info.Size() > maxFileSize:
		return nil, fmt.Errorf("%s has %d bytes, more than %d: move it to another directory", path, info.Size(), maxFileSize)
	}
	return os.ReadFile(path)
}
