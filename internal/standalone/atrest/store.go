package atrest

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
	// pageSize bounds how many values are in memory at once.
	pageSize = 100
	// encryptLimit bounds how long a start waits until values of before are encrypted.
	// The rest is encrypted by the next start, or when it is next written.
	encryptLimit = time.Minute
)

// Prepare returns the keys in the store of Secrets and Works that are stored as they
// are, and sees to it that path is a file for --encryption-provider-config that can
// read the others. It refuses to go on without their key; startOver says in its error
// what a user can do who has no copy of it.
func Prepare(ctx context.Context, path, startOver string, store clientv3.KV) (plain []string, err error) {
	stored, err := inspect(ctx, store)
	if err != nil {
		return nil, err
	}
	file, err := readKeyFile(path)
	needed, err := decide(file, err, stored, startOver)
	switch {
	case err != nil:
		return nil, err
	case needed:
		err = generate(path)
	case len(file.uncovered) > 0:
		err = file.cover()
	}
	return stored.Plain, err
}

// inspect reads how all Secrets and Works are stored.
func inspect(ctx context.Context, store clientv3.KV) (stored Stored, err error) {
	for _, kind := range confidential {
		if err := stored.addBelow(ctx, store, kind.prefix); err != nil {
			return Stored{}, fmt.Errorf("reading how %s are stored: %w", kind.resource, err)
		}
	}
	return stored, nil
}

func (s *Stored) addBelow(ctx context.Context, store clientv3.KV, prefix string) error {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		page, err := store.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
		if err != nil {
			return err
		}
		for _, pair := range page.Kvs {
			s.add(string(pair.Key), pair.Value)
			from = string(pair.Key) + "\x00"
		}
		if !page.More {
			return nil
		}
	}
}

// Encrypt encrypts values that are stored as they are, as an API server does with the
// file at path. No API server may run on the store: an admission webhook that does not
// run yet, or a schema that became stricter, cannot refuse the change so.
func Encrypt(ctx context.Context, path string, store clientv3.KV, plain []string) (encrypted int, err error) {
	ctx, cancel := context.WithTimeout(ctx, encryptLimit)
	defer cancel()
	configuration, err := encryptionconfig.LoadEncryptionConfig(ctx, path, false, "")
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	transformers := encryptionconfig.StaticTransformers(configuration.Transformers)
	var failed []error
	for _, key := range plain {
		changed, err := encrypt(ctx, store, key, transformers.TransformerForResource(resourceAt(key)))
		switch {
		case err == nil && changed:
			encrypted++
		case err == nil:
		case ctx.Err() != nil:
			return encrypted, fmt.Errorf("encrypting %d values, of which %d are encrypted: %w", len(plain), encrypted, ctx.Err())
		case len(failed) < maxNames:
			failed = append(failed, fmt.Errorf("encrypting %s: %w", key, err))
		}
	}
	return encrypted, errors.Join(failed...)
}

// resourceAt is the resource of the object that a key of the store holds.
func resourceAt(key string) schema.GroupResource {
	for _, kind := range confidential {
		if strings.HasPrefix(key, kind.prefix) {
			return kind.resource
		}
	}
	return schema.GroupResource{}
}

// encrypt replaces one value by its encrypted form. One that changed, or went,
// meanwhile stays as it is.
func encrypt(ctx context.Context, store clientv3.KV, key string, with value.Transformer) (changed bool, err error) {
	found, err := store.Get(ctx, key)
	if err != nil || len(found.Kvs) == 0 {
		return false, err
	}
	pair := found.Kvs[0]
	if _, already := keyNameOf(pair.Value); already {
		return false, nil
	}
	next, err := with.TransformToStorage(ctx, pair.Value, value.DefaultContext(pair.Key))
	if err != nil {
		return false, err
	}
	answer, err := store.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", pair.ModRevision)).Then(clientv3.OpPut(key, string(next))).Commit()
	if err != nil {
		return false, err
	}
	return answer.Succeeded, nil
}
