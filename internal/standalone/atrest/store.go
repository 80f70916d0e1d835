package atrest

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// secretsPrefix begins the keys of Secrets in the store of an API server.
	secretsPrefix = "/registry/secrets/"
	// pageSize bounds how many Secrets are in memory at once.
	pageSize = 100
	// rewriteLimit bounds how long a start waits until Secrets of before are encrypted.
	// The rest is encrypted by the next start, or when it is next written.
	rewriteLimit = time.Minute
)

// Prepare returns the Secrets that are stored as they are, and sees to it that path is
// a file for --encryption-provider-config that can read the others. It refuses to go
// on without their key.
func Prepare(ctx context.Context, path string, store clientv3.KV) (plain []types.NamespacedName, err error) {
	stored, err := inspect(ctx, store)
	if err != nil {
		return nil, err
	}
	names, missing, err := readKeys(path)
	needed, err := decide(path, names, missing, err, stored)
	if err != nil {
		return nil, err
	}
	if needed {
		err = generate(path)
	}
	return stored.Plain, err
}

// inspect reads how all Secrets are stored.
func inspect(ctx context.Context, store clientv3.KV) (Stored, error) {
	var stored Stored
	from, end := secretsPrefix, clientv3.GetPrefixRangeEnd(secretsPrefix)
	for {
		page, err := store.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
		if err != nil {
			return Stored{}, fmt.Errorf("reading how Secrets are stored: %w", err)
		}
		for _, pair := range page.Kvs {
			if err := stored.add(string(pair.Key), pair.Value); err != nil {
				return Stored{}, err
			}
			from = string(pair.Key) + "\x00"
		}
		if !page.More {
			return stored, nil
		}
	}
}

// Rewrite writes Secrets unchanged, by which the API server encrypts them. Those that
// changed or went meanwhile need it no more.
func Rewrite(ctx context.Context, api kubernetes.Interface, plain []types.NamespacedName) (encrypted int, err error) {
	ctx, cancel := context.WithTimeout(ctx, rewriteLimit)
	defer cancel()
	var failed []error
	for _, name := range plain {
		secrets := api.CoreV1().Secrets(name.Namespace)
		secret, err := secrets.Get(ctx, name.Name, metav1.GetOptions{})
		if err == nil {
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			encrypted++
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		case ctx.Err() != nil:
			return encrypted, fmt.Errorf("encrypting %d Secrets, of which %d are encrypted: %w", len(plain), encrypted, ctx.Err())
		case len(failed) < maxNames:
			failed = append(failed, fmt.Errorf("encrypting Secret %s: %w", name, err))
		}
	}
	return encrypted, errors.Join(failed...)
}
