package command

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewKindClient returns a client of the control plane that knows only the given kind, so it needs no discovery.
func NewKindClient(config *rest.Config, kind schema.GroupVersionKind, scope meta.RESTScope,
	addToScheme func(*runtime.Scheme) error) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering API types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, scope)
	karmada, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane (%s): %w", config.Host, err)
	}
	return karmada, nil
}

// pageSize is the maximum number of objects in one response.
const pageSize = 500

// ForEachPage lists objects in pages, and calls take for each page. It returns the error of the first list
// request that fails; the caller adds what it lists.
func ForEachPage[L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, karmada client.Reader, take func(P), options ...client.ListOption) error {
	return ForEachPageOf(ctx, karmada, P(new(L)), take, options...)
}

// ForEachPageOf does the same as ForEachPage for a list whose kind is set in the empty list.
func ForEachPageOf[P client.ObjectList](ctx context.Context, karmada client.Reader, empty P, take func(P),
	options ...client.ListOption) error {
	for next := ""; ; {
		// Each page has its own list, because a decoder keeps fields of a list that the next page does not set.
		list, _ := empty.DeepCopyObject().(P)
		page := append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, options...)
		if err := karmada.List(ctx, list, page...); err != nil {
			return err
		}
		take(list)
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
