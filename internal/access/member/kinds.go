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
)

// Watch makes sure that managed objects of a kind are watched. It does not wait
// for the first list. A kind that the member does not serve gives an error for
// which meta.IsNoMatchError holds.
func (m *Member) Watch(ctx context.Context, kind schema.GroupVersionKind) error {
	if m.kinds.shouldAsk(kind, time.Now()) {
		m.review(kind)
	}
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	if known := m.kinds.watched[kind]; known != nil {
		return m.unserved(kind, known)
	}
	if _, err := m.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("looking up %s in member %q: %w", kind, m.Name, err)
	}
	informer, err := m.inform(ctx, kind)
	if err != nil {
		return err
	}
	m.kinds.watched[kind] = &kindWatch{informer: informer}
	return nil
}

// Namespaced reports whether the member serves a kind as a namespaced one.
func (m *Member) Namespaced(kind schema.GroupVersionKind) (bool, error) {
	mapping, err := m.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("looking up the scope of %s in member %q: %w", kind, m.Name, err)
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// unserved returns an error if the watch of a kind has ended.
func (m *Member) unserved(kind schema.GroupVersionKind, known *kindWatch) error {
	if known == nil || !known.state.Ended {
		return nil
	}
	return fmt.Errorf("looking up %s in member %q: %w", kind, m.Name,
		&meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}})
}

// inform begins to watch a kind.
func (m *Member) inform(ctx context.Context, kind schema.GroupVersionKind) (cache.Informer, error) {
	informer, err := m.cache.GetInformer(ctx, objectOf(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s in member %q: %w", kind, m.Name, err)
	}
	if _, err := informer.AddEventHandler(m.handler(kind)); err != nil {
		return nil, fmt.Errorf("watching %s in member %q: %w", kind, m.Name, err)
	}
	return informer, nil
}

func (m *Member) handler(kind schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if added, ok := obj.(*unstructured.Unstructured); ok {
				m.notify(Event{Member: m.Name, Kind: kind, New: added, Initial: initial})
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(*unstructured.Unstructured)
			newer, ok2 := after.(*unstructured.Unstructured)
			if ok && ok2 {
				m.notify(Event{Member: m.Name, Kind: kind, Old: older, New: newer})
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if removed, ok := obj.(*unstructured.Unstructured); ok {
				m.notify(Event{Member: m.Name, Kind: kind, Old: removed})
			}
		},
	}
}

// Get returns an object of the member: from the cache when its kind is watched
// and the first list has arrived, else by asking. cached tells which. A cached
// answer sees managed objects only. The object must not be changed. Not found is
// an error for which apierrors.IsNotFound holds. Of a kind whose watch ended because
// the member does not serve it nothing is known: meta.IsNoMatchError holds then.
func (m *Member) Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (object *unstructured.Unstructured, cached bool, err error) {
	object = objectOf(kind)
	if m.synced(kind) {
		err := m.cache.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
		if ended := new(cache.ErrResourceNotCached); !errors.As(err, &ended) {
			return object, true, err
		}
	}
	m.kinds.mu.Lock()
	err = m.unserved(kind, m.kinds.watched[kind])
	m.kinds.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	object, err = m.GetLive(ctx, kind, key)
	return object, false, err
}

// GetLive asks the member for an object.
func (m *Member) GetLive(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object := objectOf(kind)
	if err := m.Client().Get(ctx, key, object); err != nil {
		return nil, err
	}
	return object, nil
}

// AwaitSync waits for the first list of a watched kind, limit at most, and tells
// whether it has arrived.
func (m *Member) AwaitSync(ctx context.Context, kind schema.GroupVersionKind, limit time.Duration) bool {
	if m.synced(kind) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	arrived := func() bool { return m.synced(kind) }
	return toolscache.WaitForCacheSync(ctx.Done(), func() bool { return arrived() || m.Denial(kind) != nil }) && arrived()
}

func (m *Member) synced(kind schema.GroupVersionKind) bool {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	known := m.kinds.watched[kind]
	return known != nil && !known.state.Ended && known.informer.HasSynced()
}
