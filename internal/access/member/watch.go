package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/loop"
)

// Watch ensures that the managed objects of a kind are watched. It does not wait for the first
// list. If the member does not serve the kind, the returned error matches meta.IsNoMatchError.
func (m *Member) Watch(ctx context.Context, kind schema.GroupVersionKind) error {
	if m.kinds.isReviewDue(kind, time.Now()) {
		m.reviewKind(kind)
	}
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	if watch := m.kinds.watches[kind]; watch != nil {
		return m.checkServed(kind, watch)
	}
	if _, err := m.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("looking up %s in member %q: %w", kind, m.Name, err)
	}
	informer, err := m.startInformer(ctx, kind)
	if err != nil {
		return err
	}
	m.kinds.watches[kind] = &kindWatch{informer: informer}
	return nil
}

// IsNamespaced reports whether the member serves a kind as a namespaced kind.
func (m *Member) IsNamespaced(kind schema.GroupVersionKind) (bool, error) {
	mapping, err := m.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("looking up the scope of %s in member %q: %w", kind, m.Name, err)
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// checkServed returns an error if the watch of a kind has ended because the kind is not served.
func (m *Member) checkServed(kind schema.GroupVersionKind, watch *kindWatch) error {
	if watch == nil || !watch.state.Stopped {
		return nil
	}
	return fmt.Errorf("looking up %s in member %q: %w", kind, m.Name,
		&meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}})
}

// startInformer starts the watch of a kind.
func (m *Member) startInformer(ctx context.Context, kind schema.GroupVersionKind) (cache.Informer, error) {
	informer, err := m.cache.GetInformer(ctx, newObject(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s in member %q: %w", kind, m.Name, err)
	}
	if _, err := informer.AddEventHandler(m.eventHandler(kind)); err != nil {
		return nil, fmt.Errorf("watching %s in member %q: %w", kind, m.Name, err)
	}
	return informer, nil
}

func (m *Member) eventHandler(kind schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return loop.Handlers[*unstructured.Unstructured]{
		Added: func(object *unstructured.Unstructured, isInInitialList bool) {
			m.notify(Event{Member: m.Name, Kind: kind, New: object, Initial: isInInitialList})
		},
		Updated: func(before, after *unstructured.Unstructured) {
			m.notify(Event{Member: m.Name, Kind: kind, Old: before, New: after})
		},
		Deleted: func(lastKnown *unstructured.Unstructured) {
			m.notify(Event{Member: m.Name, Kind: kind, Old: lastKnown})
		},
	}
}

// Get returns an object of the member. If the kind is watched and the first list has arrived, Get
// reads from the cache, else from the API server. cached reports whether it read from the cache,
// which contains only managed objects. The caller must not change the object. If the object does
// not exist, the error matches apierrors.IsNotFound. If the watch of the kind ended because the
// member does not serve the kind, the state of the object is unknown and the error matches
// meta.IsNoMatchError.
func (m *Member) Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, cached bool, err error) {
	object = newObject(kind)
	if m.isSynced(kind) {
		err := m.cache.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
		if ended := new(cache.ErrResourceNotCached); !errors.As(err, &ended) {
			return object, true, err
		}
	}
	m.kinds.mu.Lock()
	err = m.checkServed(kind, m.kinds.watches[kind])
	m.kinds.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	object, err = m.GetLive(ctx, kind, key)
	return object, false, err
}

// GetLive reads an object from the API server of the member.
func (m *Member) GetLive(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object := newObject(kind)
	if err := m.Client().Get(ctx, key, object); err != nil {
		return nil, err
	}
	return object, nil
}

// AwaitSync waits until the first list of a watched kind has arrived, but not longer than limit. It
// reports whether the list has arrived.
func (m *Member) AwaitSync(ctx context.Context, kind schema.GroupVersionKind, limit time.Duration) bool {
	if m.isSynced(kind) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	arrived := func() bool { return m.isSynced(kind) }
	return toolscache.WaitForCacheSync(ctx.Done(), func() bool { return arrived() || m.WatchDenial(kind) != nil }) && arrived()
}

func (m *Member) isSynced(kind schema.GroupVersionKind) bool {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	watch := m.kinds.watches[kind]
	return watch != nil && !watch.state.Stopped && watch.informer.HasSynced()
}
