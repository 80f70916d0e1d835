// Package template answers: what is the current content of a template? It reads objects of any kind
// for all controllers of a process.
//
// It reads templates from the shared cache of the process while the kind of the template is
// watched. Otherwise it calls the API server. Invariants:
//   - A read never starts a watch, because the informer of a kind that is no longer served would
//     retry forever and block all callers that wait for it.
//   - Readers of a kind wait for its first list only during the first 5 seconds of the watch. A
//     request to the API server has a timeout.
//   - A missing object or kind is a result and not an error.
package template

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// firstListTimeout is how long the readers of a kind wait for its first list, counted from the
	// start of the watch.
	firstListTimeout = 5 * time.Second
	// requestTimeout limits a request to the API server, because an aggregated API server behind it
	// may hang.
	requestTimeout = 10 * time.Second
)

// Cache is the shared cache of a process.
type Cache interface {
	client.Reader
	GetInformer(ctx context.Context, of client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
	RemoveInformer(ctx context.Context, of client.Object) error
}

// Reader reads templates. All controllers of a process share one Reader.
type Reader struct {
	cache            Cache
	live             client.Reader
	firstListTimeout time.Duration

	// watchMu is held while a watch starts or stops. mu is also held while the cache is read, so
	// that no watch stops during a read.
	watchMu sync.Mutex
	mu      sync.RWMutex
	watched map[schema.GroupVersionKind]kindWatch
}

// kindWatch is the watch of one kind.
type kindWatch struct {
	informer cache.Informer
	// permanent is true if Watch was called for the kind, so that only Unwatch stops the watch. It
	// is false if WatchTemporarily started the watch.
	permanent bool
	// ended is closed when the watch stops.
	ended chan struct{}
	// firstListDeadline is the time at which readers stop waiting for the first list.
	firstListDeadline time.Time
}

// NewReader returns a reader that reads from a cache, or from the API server if the cache does not
// contain the kind.
func NewReader(shared Cache, live client.Reader) *Reader {
	return &Reader{cache: shared, live: live, firstListTimeout: firstListTimeout, watched: map[schema.GroupVersionKind]kindWatch{}}
}

// Watch starts the watch of a served kind, unless the kind is already watched. It does not wait for
// the first list. The informer is shared, and handlers may be added to it and removed from it. The
// caller stops the watch with Unwatch when the kind is no longer served.
func (r *Reader) Watch(ctx context.Context, kind schema.GroupVersionKind) (cache.Informer, error) {
	return r.startWatch(ctx, kind, true)
}

// WatchTemporarily starts a watch like Watch. The caller stops the watch with UnwatchTemporary when
// the kind is no longer served.
func (r *Reader) WatchTemporarily(ctx context.Context, kind schema.GroupVersionKind) (cache.Informer, error) {
	return r.startWatch(ctx, kind, false)
}

func (r *Reader) startWatch(ctx context.Context, kind schema.GroupVersionKind, keep bool) (cache.Informer, error) {
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	informer, err := r.cache.GetInformer(ctx, emptyObject(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.watched[kind]
	if entry.informer != informer {
		entry = kindWatch{informer: informer, ended: make(chan struct{}), firstListDeadline: time.Now().Add(r.firstListTimeout)}
	}
	entry.permanent = entry.permanent || keep
	r.watched[kind] = entry
	return informer, nil
}

// IsWatchedPermanently reports whether a caller of Watch is responsible for the watch of a kind.
func (r *Reader) IsWatchedPermanently(kind schema.GroupVersionKind) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.watched[kind].permanent
}

// UnwatchTemporary stops the watch of a kind for the whole process, unless a caller of Watch is
// responsible for it.
func (r *Reader) UnwatchTemporary(ctx context.Context, kind schema.GroupVersionKind) error {
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	if r.IsWatchedPermanently(kind) {
		return nil
	}
	return r.stopWatch(ctx, kind)
}

// Unwatch stops the watch of a kind for the whole process.
func (r *Reader) Unwatch(ctx context.Context, kind schema.GroupVersionKind) error {
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	return r.stopWatch(ctx, kind)
}

func (r *Reader) stopWatch(ctx context.Context, kind schema.GroupVersionKind) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry, ok := r.watched[kind]; ok {
		close(entry.ended)
		delete(r.watched, kind)
	}
	if err := r.cache.RemoveInformer(ctx, emptyObject(kind)); err != nil {
		return fmt.Errorf("stopping the watch of %s: %w", kind, err)
	}
	return nil
}

// GetCached returns a template from the cache, or nil if the template does not exist. If the cache
// does not contain the kind, it calls the API server. The template must not be changed.
func (r *Reader) GetCached(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	found, _, err := r.getCachedOrLive(ctx, kind, key)
	return found, err
}

// Get returns a template like GetCached, but calls the API server before it returns that the
// template does not exist, because an object that refers to a template may be in the cache earlier
// than the template. The template must not be changed.
func (r *Reader) Get(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	found, cached, err := r.getCachedOrLive(ctx, kind, key)
	if cached && found == nil && err == nil {
		return r.GetLive(ctx, kind, key)
	}
	return found, err
}

// GetLive returns a template from the API server, or nil if the template does not exist.
func (r *Reader) GetLive(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return getObject(ctx, r.live, kind, key)
}

// List returns the objects in a namespace that match a selector. It reads from the cache if the
// cache contains the kind. With an empty namespace it returns the cluster-scoped objects. The
// objects must not be changed.
func (r *Reader) List(ctx context.Context, kind schema.GroupVersionKind, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	list := func(ctx context.Context, reader client.Reader) (err error) {
		found, err = listObjects(ctx, reader, kind, namespace, selector)
		return err
	}
	cached, err := r.fromCache(ctx, kind, list)
	if !cached {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		err = list(ctx, r.live)
	}
	return found, err
}

func (r *Reader) getCachedOrLive(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (found *unstructured.Unstructured, cached bool, err error) {
	cached, err = r.fromCache(ctx, kind, func(ctx context.Context, reader client.Reader) (err error) {
		found, err = getObject(ctx, reader, kind, key)
		return err
	})
	if !cached {
		found, err = r.GetLive(ctx, kind, key)
	}
	return found, cached, err
}

// fromCache calls read with the cache if the cache contains all objects of a kind, and reports
// whether it does.
func (r *Reader) fromCache(ctx context.Context, kind schema.GroupVersionKind, read func(context.Context, client.Reader) error) (bool, error) {
	r.awaitFirstList(ctx, kind)
	r.mu.RLock()
	defer r.mu.RUnlock()
	if entry, ok := r.watched[kind]; !ok || !entry.isComplete() {
		return false, nil
	}
	return true, read(ctx, r.cache)
}

// awaitFirstList waits until the first list of a kind has arrived or its deadline has passed.
func (r *Reader) awaitFirstList(ctx context.Context, kind schema.GroupVersionKind) {
	r.mu.RLock()
	entry, ok := r.watched[kind]
	r.mu.RUnlock()
	if !ok || entry.informer.HasSynced() {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, entry.firstListDeadline)
	defer cancel()
	select {
	case <-entry.informer.HasSyncedChecker().Done():
	case <-entry.ended:
	case <-ctx.Done():
	}
}

func (k kindWatch) isComplete() bool { return k.informer.HasSynced() && !k.informer.IsStopped() }

func getObject(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	object := emptyObject(kind)
	err := reader.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	if object.GetNamespace() != key.Namespace {
		// The request names a namespaced object, but this kind is cluster-scoped, so the object
		// found is not the requested one.
		return nil, nil
	}
	return object, nil
}

func listObjects(
	ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace string, selector labels.Selector,
) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s %q: %w", kind.Kind, selector, err)
	}
	var found []*unstructured.Unstructured
	for i := range list.Items {
		// A list without a namespace contains the objects of all namespaces, so other namespaces
		// are skipped.
		if object := &list.Items[i]; object.GetNamespace() == namespace {
			found = append(found, object)
		}
	}
	return found, nil
}

// isAbsent reports whether the object or the kind does not exist.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// emptyObject returns an object with a kind and no other content.
func emptyObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
