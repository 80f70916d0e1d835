// Package template reads the current content of templates, which are objects of any kind in the
// control plane.
//
// It reads from the watch of the kind, if there is one, and otherwise from the API server. Invariants:
//   - A read never starts a watch. The controllers that need the events of a kind start its watch.
//   - Readers of a kind wait for its first list only during the first 5 seconds of the watch. A
//     request to the API server has a timeout.
//   - A missing object or kind is a result and not an error.
package template

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/watches"
)

const (
	// firstListTimeout is how long the readers of a kind wait for its first list, counted from the
	// start of the watch.
	firstListTimeout = 5 * time.Second
	// requestTimeout limits a request to the API server, because an aggregated API server behind it
	// may hang.
	requestTimeout = 10 * time.Second
)

// Reader reads templates. All controllers of a process share one Reader. The objects that it returns
// must not be changed.
type Reader struct {
	watches *watches.Manager
	live    client.Reader
}

// NewReader returns a reader that reads from the watches of the control plane, or from the API server
// if no watch contains the kind. A nil manager has no watches.
func NewReader(manager *watches.Manager, live client.Reader) *Reader {
	return &Reader{watches: manager, live: live}
}

// GetCached returns a template from the watch of its kind, or nil if the watch does not contain it. If
// the kind is not watched, it calls the API server.
func (r *Reader) GetCached(ctx context.Context, kind schema.GroupVersionKind,
	key types.NamespacedName) (*unstructured.Unstructured, error) {
	if object, isUsable := r.getFromWatch(ctx, kind, key); isUsable {
		return object, nil
	}
	return r.GetLive(ctx, kind, key)
}

// Get returns a template like GetCached, but calls the API server before it returns that the
// template does not exist, because an object that refers to a template may be observed earlier than
// the template.
func (r *Reader) Get(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if object, _ := r.getFromWatch(ctx, kind, key); object != nil {
		return object, nil
	}
	return r.GetLive(ctx, kind, key)
}

// GetListed returns a template from the watch of its kind at once. It returns nil if no watch has
// listed the template.
func (r *Reader) GetListed(kind schema.GroupVersionKind, key types.NamespacedName) *unstructured.Unstructured {
	objects, isWatched := r.find(kind)
	if !isWatched {
		return nil
	}
	object, _ := objects.Get(key)
	return object
}

// GetLive returns a template from the API server, or nil if the template does not exist.
func (r *Reader) GetLive(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := r.live.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
	switch {
	case isNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	case object.GetNamespace() != key.Namespace:
		// The request names a namespaced object, but this kind is cluster-scoped, so the object
		// found is not the requested one.
		return nil, nil
	}
	return object, nil
}

// List returns the objects in a namespace that match a selector. With an empty namespace it returns
// the cluster-scoped objects.
func (r *Reader) List(ctx context.Context, kind schema.GroupVersionKind, namespace string,
	selector labels.Selector) ([]*unstructured.Unstructured, error) {
	watched, isUsable := r.listFromWatch(ctx, kind, namespace, selector)
	if !isUsable {
		var err error
		if watched, err = r.listLive(ctx, kind, namespace, selector); err != nil {
			return nil, err
		}
	}
	var found []*unstructured.Unstructured
	for _, object := range watched {
		// A list without a namespace contains the objects of all namespaces.
		if object.GetNamespace() == namespace {
			found = append(found, object)
		}
	}
	return found, nil
}

// ListCached returns all objects of a kind in all namespaces from the watch of the kind. It returns no
// objects if no watch contains all of them.
func (r *Reader) ListCached(ctx context.Context, kind schema.GroupVersionKind) []*unstructured.Unstructured {
	found, _ := r.listFromWatch(ctx, kind, "", labels.Everything())
	return found
}

func (r *Reader) getFromWatch(ctx context.Context, kind schema.GroupVersionKind,
	key types.NamespacedName) (*unstructured.Unstructured, bool) {
	objects, isListed := r.objects(ctx, kind)
	if !isListed {
		return nil, false
	}
	return objects.Get(key)
}

func (r *Reader) listFromWatch(ctx context.Context, kind schema.GroupVersionKind, namespace string,
	selector labels.Selector) ([]*unstructured.Unstructured, bool) {
	objects, isListed := r.objects(ctx, kind)
	if !isListed {
		return nil, false
	}
	return objects.List(namespace, selector)
}

// objects returns the objects of a kind, after its first list has arrived or its deadline has passed.
func (r *Reader) objects(ctx context.Context, kind schema.GroupVersionKind) (_ watches.Objects, isListed bool) {
	objects, isWatched := r.find(kind)
	if !isWatched {
		return watches.Objects{}, false
	}
	ctx, cancel := context.WithDeadline(ctx, objects.StartedAt().Add(firstListTimeout))
	defer cancel()
	return objects, objects.WaitForList(ctx)
}

// find returns the objects of a kind, which may not be listed yet.
func (r *Reader) find(kind schema.GroupVersionKind) (_ watches.Objects, isWatched bool) {
	if r.watches == nil {
		return watches.Objects{}, false
	}
	return r.watches.Find(watches.ControlPlane, watches.Query{Kind: kind})
}

func (r *Reader) listLive(ctx context.Context, kind schema.GroupVersionKind, namespace string,
	selector labels.Selector) ([]*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := r.live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector},
		client.UnsafeDisableDeepCopy)
	if err != nil && !isNotFound(err) {
		return nil, fmt.Errorf("listing %s %q: %w", kind.Kind, selector, err)
	}
	found := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	return found, nil
}

// isNotFound reports whether an error means that the object or its kind does not exist.
func isNotFound(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
