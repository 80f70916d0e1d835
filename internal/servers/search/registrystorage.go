package search

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/admission"
	"karmada.io/karmada/internal/extensionserver"
)

// storagePrefix is the part of the key in etcd between the prefix of the server and the name. Its
// capital letter is a contract with stored objects.
const storagePrefix = searchv1alpha1.GroupName + "/resourceRegistries"

// registryStorage serves resourceregistries and resourceregistries/status. A write to the main resource
// never changes the status, and a write to the status never changes anything else. As for all kinds, the
// generation is incremented when the spec changes, and when finalizers delay a deletion that begins.
type registryStorage struct {
	// registry is the main resource.
	registry *genericregistry.Store
	// status is the status subresource.
	status *extensionserver.StatusStorage
}

// newRegistryStorage opens the storage of ResourceRegistries. The scheme must contain the API group with its
// version and with the internal version. rules validate the registries.
func newRegistryStorage(scheme *runtime.Scheme, options generic.RESTOptionsGetter, rules admission.Options) (*registryStorage, error) {
	writes := newRegistryStrategy(scheme, rules)
	resource := searchv1alpha1.Resource(searchv1alpha1.ResourceRegistryResource)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &searchv1alpha1.ResourceRegistry{} },
		NewListFunc:               func() runtime.Object { return &searchv1alpha1.ResourceRegistryList{} },
		PredicateFunc:             selectRegistries,
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: searchv1alpha1.Resource("resourceregistry"),
		CreateStrategy:            writes,
		UpdateStrategy:            writes,
		DeleteStrategy:            writes,
		ResetFieldsStrategy:       writes,
		TableConvertor:            rest.NewDefaultTableConvertor(resource),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: withStoragePrefix{options},
		AttrFunc: registryAttributes}); err != nil {
		return nil, fmt.Errorf("opening the storage of resource registries: %w", err)
	}
	return &registryStorage{registry: store, status: extensionserver.NewStatusStorage(store, registryStatusStrategy{writes})}, nil
}

// withStoragePrefix are storage options with the prefix of ResourceRegistries.
type withStoragePrefix struct {
	generic.RESTOptionsGetter
}

// GetRESTOptions returns the options with the prefix.
func (w withStoragePrefix) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := w.RESTOptionsGetter.GetRESTOptions(resource, example)
	options.ResourcePrefix = storagePrefix
	return options, err
}

// registryAttributes returns the labels and fields that selectors match.
func registryAttributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	registry, ok := obj.(*searchv1alpha1.ResourceRegistry)
	if !ok {
		return nil, nil, fmt.Errorf("selecting resource registries: got a %T", obj)
	}
	return registry.Labels, generic.ObjectMetaFieldsSet(&registry.ObjectMeta, false), nil
}

func selectRegistries(label labels.Selector, field fields.Selector) apistorage.SelectionPredicate {
	return apistorage.SelectionPredicate{Label: label, Field: field, GetAttrs: registryAttributes}
}
