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

	"karmada.io/karmada/internal/domain/servedkinds"
)

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// crdPageSize is the number of CustomResourceDefinitions that are requested in one page.
const crdPageSize = 100

// proveKindUndefined returns nil only if it proves that a kind that the member does not serve has
// no objects there. A custom kind has no objects if no CustomResourceDefinition defines it, because
// its objects are deleted with the CustomResourceDefinition. A CustomResourceDefinition that serves
// no version keeps its objects, and so does an API server that does not serve a built-in kind.
func (m *Member) proveKindUndefined(ctx context.Context, kind schema.GroupKind) error {
	if servedkinds.IsBuiltInGroup(kind.Group) || scheme.Scheme.IsGroupRegistered(kind.Group) {
		return fmt.Errorf("%s is a kind of Kubernetes, whose objects stay in the storage of an API server that does not serve it", kind)
	}
	page := metav1.ListOptions{Limit: crdPageSize}
	for {
		var names []string
		if err := m.bounds.ReadPage(ctx, &page, m.listCRDs, func(list runtime.Object) error {
			found, err := meta.ListAccessor(list)
			if err != nil {
				return fmt.Errorf("listing its CustomResourceDefinitions: %w", err)
			}
			page.Continue = found.GetContinue()
			return meta.EachListItem(list, func(definition runtime.Object) error {
				named, err := meta.Accessor(definition)
				if err == nil && servedkinds.IsCRDOfGroup(kind.Group, named.GetName()) {
					names = append(names, named.GetName())
				}
				return err
			})
		}); err != nil {
			return err
		}
		// The definitions are read after ReadPage returned, because a definition may be a large
		// response too, and during ReadPage the page may hold the only slot for large responses.
		for _, name := range names {
			if err := m.requireNoCRD(ctx, kind, name); err != nil {
				return err
			}
		}
		if page.Continue == "" {
			return nil
		}
	}
}

// listCRDs returns one page of CustomResourceDefinitions with metadata only.
func (m *Member) listCRDs(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(crdKind.GroupVersion().WithKind(crdKind.Kind + "List"))
	if err := m.Client().List(ctx, list, &client.ListOptions{Limit: page.Limit, Continue: page.Continue}); err != nil {
		return nil, fmt.Errorf("listing its CustomResourceDefinitions: %w", err)
	}
	return list, nil
}

// requireNoCRD returns an error if a CustomResourceDefinition defines a kind, or if this is unknown.
func (m *Member) requireNoCRD(ctx context.Context, kind schema.GroupKind, name string) error {
	definition, err := m.GetLive(ctx, crdKind, client.ObjectKey{Name: name})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	case servedkinds.CRDDefinesKind(definition.Object, kind):
		return fmt.Errorf("CustomResourceDefinition %s keeps its objects and serves none of its versions", name)
	}
	return nil
}
