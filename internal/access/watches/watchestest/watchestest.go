// Package watchestest connects a watch manager to the objects of a fake client.
package watchestest

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/servedkinds"
)

// NewManager returns a manager whose control plane contains the objects of a client.
func NewManager(ctx context.Context, objects client.WithWatch) *watches.Manager {
	manager := watches.NewManager(ctx)
	manager.Connect(watches.ControlPlane, NewServer(objects, func(schema.GroupVersionKind) bool { return true }))
	return manager
}

// NewServer returns an API server that contains the objects of a client and serves some kinds.
func NewServer(objects client.WithWatch, serves func(schema.GroupVersionKind) bool) *watches.Server {
	return &watches.Server{
		Source: func(query watches.Query) (*watches.Source, error) {
			kind := query.Kind
			if !serves(kind) {
				return nil, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
			}
			return watches.NewSource(kindClient{objects, kind}, kind.Kind, query.LabelSelector, query.FieldSelector, nil), nil
		},
		Availability: func(kind schema.GroupVersionKind) (servedkinds.Availability, error) {
			if serves(kind) {
				return servedkinds.Served, nil
			}
			return servedkinds.NotServed, nil
		},
	}
}

// kindClient reads the objects of one kind.
type kindClient struct {
	objects client.WithWatch
	kind    schema.GroupVersionKind
}

func (k kindClient) newList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.kind.GroupVersion().WithKind(k.kind.Kind + "List"))
	return list
}

// List implements watches.Client, as does Watch.
func (k kindClient) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list := k.newList()
	if err := k.objects.List(ctx, list, &client.ListOptions{Raw: &o}); err != nil {
		return nil, err
	}
	list.SetResourceVersion("1")
	return list, nil
}

// Watch passes on the changes of the objects. The objects are converted, because the fake client
// delivers typed objects.
func (k kindClient) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := k.objects.Watch(ctx, k.newList(), &client.ListOptions{Raw: &o})
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event.Object)
		if err != nil {
			return event, false
		}
		object := &unstructured.Unstructured{Object: content}
		object.SetGroupVersionKind(k.kind)
		event.Object = object
		return event, true
	}), nil
}
