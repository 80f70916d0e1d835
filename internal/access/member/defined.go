package member

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/served"
)

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// definitionsPage is how many CustomResourceDefinitions one request returns.
const definitionsPage = 100

// proveUndefined returns nil if a kind that the member does not serve has no objects there:
// those of a custom kind go with its CustomResourceDefinition. One that serves no version
// keeps its objects, and so does an API server that does not serve a kind of its own.
func (m *Member) proveUndefined(ctx context.Context, kind schema.GroupKind) error {
	if served.IsBuiltIn(kind.Group) || scheme.Scheme.IsGroupRegistered(kind.Group) {
		return fmt.Errorf("%s is a kind of Kubernetes, whose objects stay in the storage of an API server that does not serve it", kind)
	}
	page := metav1.ListOptions{Limit: definitionsPage}
	for {
		var names []string
		if err := m.bounds.ReadPage(ctx, &page, m.listDefinitions, func(list runtime.Object) error {
			found, err := meta.ListAccessor(list)
			if err != nil {
				return fmt.Errorf("listing its CustomResourceDefinitions: %w", err)
			}
			page.Continue = found.GetContinue()
			return meta.EachListItem(list, func(definition runtime.Object) error {
				named, err := meta.Accessor(definition)
				if err == nil && served.IsDefinitionOf(kind.Group, named.GetName()) {
					names = append(names, named.GetName())
				}
				return err
			})
		}); err != nil {
			return err
		}
		// Not while the page keeps its place among the large answers, which one of these may be.
		for _, name := range names {
			if err := m.checkDefinition(ctx, kind, name); err != nil {
				return err
			}
		}
		if page.Continue == "" {
			return nil
		}
	}
}

// listDefinitions returns the names of a page of the CustomResourceDefinitions.
func (m *Member) listDefinitions(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(definitionKind.GroupVersion().WithKind(definitionKind.Kind + "List"))
	if err := m.Client().List(ctx, list, &client.ListOptions{Limit: page.Limit, Continue: page.Continue}); err != nil {
		return nil, fmt.Errorf("listing its CustomResourceDefinitions: %w", err)
	}
	return list, nil
}

// checkDefinition returns an error if a CustomResourceDefinition defines a kind, or may.
func (m *Member) checkDefinition(ctx context.Context, kind schema.GroupKind, name string) error {
	definition, err := m.GetLive(ctx, definitionKind, client.ObjectKey{Name: name})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	case served.Defines(definition.Object, kind):
		return fmt.Errorf("CustomResourceDefinition %s keeps its objects and serves none of its versions", name)
	}
	return nil
}
