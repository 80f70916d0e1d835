// Package testetcd starts an etcd for tests of API servers that need no control plane.
package testetcd

import (
	"path/filepath"
	"testing"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone/etcd"
)

// Start runs an etcd with a new data directory until the test ends.
func Start(t testing.TB) *etcd.Server {
	t.Helper()
	dir := t.TempDir()
	return StartIn(t, filepath.Join(dir, "etcd"), pki.Dir{Path: filepath.Join(dir, "pki")})
}

// StartIn runs an etcd on a data directory until the test ends or the caller closes it. It issues the
// certificates that are missing in certs.
func StartIn(t testing.TB, dataDir string, certs pki.Dir) *etcd.Server {
	t.Helper()
	certificates, err := etcd.Certificates(certs, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pki.EnsureAll(certificates); err != nil {
		t.Fatal(err)
	}
	server, err := etcd.Start(t.Context(), etcd.Options{DataDir: dataDir, Certs: certs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}
