package standalone

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
)

const (
	// pageSize limits how many values are in memory at once.
	pageSize = 100
	// encryptTimeout limits the time in which a start encrypts values of an earlier release. The
	// remaining values are encrypted by the next start, or when the API server writes them.
	encryptTimeout = time.Minute
)

// prepareKeyFile ensures that path is an encryption provider configuration that can decrypt the stored
// Secrets and Works, and returns the etcd keys of unencrypted values. If a key that encrypts stored values
// is missing, the returned error contains startOver, the advice for a user without a copy of the key.
func prepareKeyFile(ctx context.Context, path, startOver string, store clientv3.KV) (plaintextKeys []string, err error) {
	stored, err := readStoredValues(ctx, store)
	if err != nil {
		return nil, err
	}
	file, err := readKeyFile(path)
	keyNeeded, err := decideKeyGeneration(file, err, stored, startOver)
	switch {
	case err != nil:
		return nil, err
	case keyNeeded:
		err = generateKeyFile(path)
	case len(file.uncoveredResources) > 0:
		err = file.coverAllResources()
	}
	return stored.PlaintextKeys, err
}

// readStoredValues reads how all Secrets and Works are stored.
func readStoredValues(ctx context.Context, store clientv3.KV) (stored storedValues, err error) {
	for _, kind := range encryptedKinds {
		if err := stored.addPrefix(ctx, store, kind.prefix); err != nil {
			return storedValues{}, fmt.Errorf("reading the stored %s: %w", kind.resource, err)
		}
	}
	return stored, nil
}

func (s *storedValues) addPrefix(ctx context.Context, store clientv3.KV, prefix string) error {
	start, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		page, err := store.Get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
		if err != nil {
			return err
		}
		for _, pair := range page.Kvs {
			s.add(string(pair.Key), pair.Value)
			start = string(pair.Key) + "\x00"
		}
		if !page.More {
			return nil
		}
	}
}

// Encrypt encrypts the values of plaintextKeys in the same way as an API server with the key file
// at path. No API server may run on this etcd meanwhile. Encrypt changes the values directly in
// etcd, so an admission webhook or an invalid schema cannot reject the change.
func Encrypt(ctx context.Context, path string, store clientv3.KV, plaintextKeys []string) (encrypted int, err error) {
	ctx, cancel := context.WithTimeout(ctx, encryptTimeout)
	defer cancel()
	configuration, err := encryptionconfig.LoadEncryptionConfig(ctx, path, false, "")
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	transformers := encryptionconfig.StaticTransformers(configuration.Transformers)
	var errs []error
	for _, key := range plaintextKeys {
		changed, err := encryptValue(ctx, store, key, transformers.TransformerForResource(resourceOfKey(key)))
		switch {
		case err == nil && changed:
			encrypted++
		case err == nil:
		case ctx.Err() != nil:
			return encrypted, fmt.Errorf("encrypting %d values, %d of them done: %w", len(plaintextKeys), encrypted, ctx.Err())
		case len(errs) < maxNamesInError:
			errs = append(errs, fmt.Errorf("encrypting %s: %w", key, err))
		}
	}
	return encrypted, errors.Join(errs...)
}

// resourceOfKey returns the resource of the object under an etcd key.
func resourceOfKey(key string) schema.GroupResource {
	for _, kind := range encryptedKinds {
		if strings.HasPrefix(key, kind.prefix) {
			return kind.resource
		}
	}
	return schema.GroupResource{}
}

// encryptValue replaces one value with its encrypted form. It does not write a value that was
// changed or deleted meanwhile.
func encryptValue(ctx context.Context, store clientv3.KV, key string, transformer value.Transformer) (changed bool, err error) {
	found, err := store.Get(ctx, key)
	if err != nil || len(found.Kvs) == 0 {
		return false, err
	}
	pair := found.Kvs[0]
	if _, isEncrypted := encryptionKeyName(pair.Value); isEncrypted {
		return false, nil
	}
	encryptedValue, err := transformer.TransformToStorage(ctx, pair.Value, value.DefaultContext(pair.Key))
	if err != nil {
		return false, err
	}
	response, err := store.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", pair.ModRevision)).Then(clientv3.OpPut(key,
		string(encryptedValue))).Commit()
	if err != nil {
		return false, err
	}
	return response.Succeeded, nil
}
