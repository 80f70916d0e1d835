package member

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/loop"
)

// managedWatches are the subscriptions to the managed objects of one member. They stay open when the
// connection to the member is replaced.
type managedWatches struct {
	member  string
	manager *watches.Manager
	notify  func(Event)
	// onRestored is called when the objects of a kind are watched again after the member denied the
	// watch or did not serve the kind.
	onRestored func(kind schema.GroupVersionKind)

	mu            sync.Mutex
	subscriptions map[schema.GroupVersionKind]*watches.Subscription
}

// objects returns a kind's managed objects. It returns false if the kind is not watched.
func (m *managedWatches) objects(kind schema.GroupVersionKind) (watches.Objects, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	subscription, ok := m.subscriptions[kind]
	if !ok {
		return watches.Objects{}, false
	}
	return subscription.Objects, true
}

func (m *managedWatches) subscribe(kind schema.GroupVersionKind) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.subscriptions[kind] != nil {
		return nil
	}
	var isLost bool
	subscription, err := m.manager.Subscribe(m.member, watches.Query{Kind: kind, LabelSelector: watches.ManagedSelector}, watches.Subscriber{
		Handler: loop.Handlers[*unstructured.Unstructured]{
			Added: func(object *unstructured.Unstructured, isInitial bool) {
				m.notify(Event{Member: m.member, Kind: kind, New: object, Initial: isInitial})
			},
			Updated: func(before, after *unstructured.Unstructured) {
				m.notify(Event{Member: m.member, Kind: kind, Old: before, New: after})
			},
			Deleted: func(last *unstructured.Unstructured) { m.notify(Event{Member: m.member, Kind: kind, Old: last}) },
		},
		OnState: func(_, after watches.State) {
			switch after.Phase {
			case watches.NotServed, watches.Denied:
				isLost = true
			case watches.Synced:
				if isLost {
					m.onRestored(kind)
				}
				isLost = false
			}
		},
	})
	if err != nil {
		return err
	}
	m.subscriptions[kind] = subscription
	return nil
}

func (m *managedWatches) close() {
	m.mu.Lock()
	closed := m.subscriptions
	m.subscriptions = map[schema.GroupVersionKind]*watches.Subscription{}
	m.mu.Unlock()
	for _, subscription := range closed {
		subscription.Close()
	}
}

// Watch ensures that the managed objects of a kind are watched. It does not wait for the first
// list. If the member does not serve the kind, the returned error matches meta.IsNoMatchError.
func (m *Member) Watch(kind schema.GroupVersionKind) error {
	if objects, ok := m.managed.objects(kind); ok {
		err := m.requireServed(kind, objects)
		if err != nil {
			objects.Retry()
		}
		return err
	}
	if _, err := m.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("looking up %s in member %q: %w", kind, m.Name, err)
	}
	return m.managed.subscribe(kind)
}

// requireServed returns an error that matches meta.IsNoMatchError if the watch of a kind found that the
// member does not serve the kind.
func (m *Member) requireServed(kind schema.GroupVersionKind, objects watches.Objects) error {
	if state := objects.State(); state.Phase == watches.NotServed {
		return fmt.Errorf("looking up %s in member %q: %w", kind, m.Name, state.Err)
	}
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

// Get returns an object of the member. If the kind is watched and the first list has arrived, Get
// reads from the cache, else from the API server. cached reports whether it read from the cache,
// which contains only managed objects. The caller must not change the object. If the object does
// not exist, the error matches apierrors.IsNotFound. If the watch of the kind found that the member
// does not serve the kind, the state of the object is unknown and the error matches
// meta.IsNoMatchError.
func (m *Member) Get(
	ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey,
) (object *unstructured.Unstructured, cached bool, err error) {
	if objects, ok := m.managed.objects(kind); ok {
		object, isUsable := objects.Get(key)
		switch {
		case isUsable && object != nil:
			return object, true, nil
		case isUsable:
			return nil, true, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
		}
		if err := m.requireServed(kind, objects); err != nil {
			return nil, false, err
		}
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

// WaitForList waits until the managed objects of a kind have been listed, but not longer than limit. It
// reports whether they have been listed. It does not wait if the member denies the watch.
func (m *Member) WaitForList(ctx context.Context, kind schema.GroupVersionKind, limit time.Duration) bool {
	objects, ok := m.managed.objects(kind)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return objects.WaitForList(ctx)
}

// WatchDenial returns the error with which the member denies the watch of a kind. It returns nil if
// the watch is allowed or its state is unknown. Without the watch, Karmada observes neither changes of
// the status nor changes by other clients.
func (m *Member) WatchDenial(kind schema.GroupVersionKind) error {
	if objects, ok := m.managed.objects(kind); ok {
		if state := objects.State(); state.Phase == watches.Denied {
			return state.Err
		}
	}
	return nil
}
