package standalone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/standalone/atrest"
)

// etcdDialTimeout is the time limit for connecting to etcd on this machine.
const etcdDialTimeout = 10 * time.Second

// encryptionFile returns the path of the file with the key that encrypts Secrets and Works in
// etcd.
func (c *Cluster) encryptionFile() string { return filepath.Join(c.options.Dir, "encryption.yaml") }

// dialEtcd opens a client of an etcd that startEtcd started.
func dialEtcd(ctx context.Context, endpoint string) (*clientv3.Client, error) {
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: etcdDialTimeout, Context: ctx, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("creating a client of etcd: %w", err)
	}
	return store, nil
}

// encryptStorage ensures that the API server has the key of the Secrets and Works in etcd. It also
// encrypts the values that an earlier release stored unencrypted. If it cannot encrypt a value,
// the next start retries.
func (c *Cluster) encryptStorage(ctx context.Context) error {
	store, err := dialEtcd(ctx, c.etcdEndpoint)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	startOver := cmp.Or(c.options.StartOverAdvice, "start over without "+c.options.Dir)
	plain, err := atrest.PrepareKeyFile(ctx, c.encryptionFile(), startOver, store)
	if err != nil {
		return fmt.Errorf("preparing the encryption of cluster %q: %w", c.options.Name, err)
	}
	if len(plain) == 0 {
		return nil
	}
	encrypted, err := atrest.Encrypt(ctx, c.encryptionFile(), store, plain)
	logger := klog.FromContext(ctx).WithValues("cluster", c.options.Name, "found", len(plain), "encrypted", encrypted)
	if err != nil {
		logger.Error(err, "Encrypting Secrets and Works of an earlier release, the next start retries")
		return nil
	}
	logger.Info("Encrypted Secrets and Works of an earlier release")
	return nil
}

// ReadEtcdValues returns the values under a prefix in the etcd of a cluster in dir. The cluster
// must not run. The caller must hold the lock of the data directory.
func ReadEtcdValues(ctx context.Context, dir, prefix string) (values [][]byte, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	endpoint, etcd, err := startEtcd(ctx, EtcdOptions{DataDir: filepath.Join(dir, etcdDir), Fsync: true})
	if err != nil {
		return nil, err
	}
	defer func() { etcd.stop(); <-etcd.done }()
	store, err := dialEtcd(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	found, err := store.Get(ctx, prefix, clientv3.WithPrefix())
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
	found, err := os.ReadDir(filepath.Join(dir, etcdDir, "member"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading the directory of etcd in %s: %w", dir, err)
	}
	return len(found) > 0, nil
}
