package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone/etcd"
)

func storageDir(dir string) string { return filepath.Join(dir, "etcd") }

func certsDir(dir string) pki.Dir { return pki.Dir{Path: filepath.Join(dir, "pki")} }

// SaveSnapshot writes the storage of a running cluster in dir to a new file; see etcd.SaveSnapshot.
func SaveSnapshot(ctx context.Context, dir, file, prefix string) (etcd.Snapshot, error) {
	return etcd.SaveSnapshot(ctx, storageDir(dir), certsDir(dir), file, prefix)
}

// ReadEtcdValues returns the values under a prefix in a cluster's etcd in dir. The cluster must not run, and
// the caller must hold the data directory's lock.
func ReadEtcdValues(ctx context.Context, dir, prefix string) (values [][]byte, err error) {
	server, err := etcd.Start(ctx, etcd.Options{DataDir: storageDir(dir), Fsync: true})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	found, err := server.Client().Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading %s from the etcd of %s: %w", prefix, dir, err)
	}
	for _, pair := range found.Kvs {
		values = append(values, pair.Value)
	}
	return values, nil
}

// HasEtcdData reports whether the etcd of a cluster in dir has stored data.
func HasEtcdData(dir string) (bool, error) {
	found, err := os.ReadDir(filepath.Join(storageDir(dir), "member"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading the directory of etcd in %s: %w", dir, err)
	}
	return len(found) > 0, nil
}
