package template

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListCached returns all objects of a kind in all namespaces from the cache. The objects must not
// be changed. It returns no objects if the cache does not yet contain all objects of the kind.
func (r *Reader) ListCached(ctx context.Context, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if _, err := r.fromCache(ctx, kind, func(ctx context.Context, reader client.Reader) error {
		return reader.List(ctx, list, client.UnsafeDisableDeepCopy)
	}); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	return list.Items, nil
}
