package standalone

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/klog/v2"
)

// encryptionFile returns the path of the file with the key that encrypts Secrets and Works in
// etcd.
func (c *Cluster) encryptionFile() string { return filepath.Join(c.options.Dir, "encryption.yaml") }

// encryptStorage ensures that the API server has the key for the Secrets and Works in etcd. It also encrypts
// values that an earlier release stored unencrypted. If it cannot encrypt a value, it tries again at the
// next start.
func (c *Cluster) encryptStorage(ctx context.Context) error {
	store := c.etcd.Client()
	startOver := cmp.Or(c.options.StartOverAdvice, "start over without "+c.options.Dir)
	plain, err := prepareKeyFile(ctx, c.encryptionFile(), startOver, store)
	if err != nil {
		return fmt.Errorf("preparing the encryption of cluster %q: %w", c.options.Name, err)
	}
	if len(plain) == 0 {
		return nil
	}
	encrypted, err := Encrypt(ctx, c.encryptionFile(), store, plain)
	logger := klog.FromContext(ctx).WithValues("cluster", c.options.Name, "found", len(plain), "encrypted", encrypted)
	if err != nil {
		logger.Error(err, "Encrypting Secrets and Works of an earlier release, the next start retries")
		return nil
	}
	logger.Info("Encrypted Secrets and Works of an earlier release")
	return nil
}
