package aggregated

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	apistorage "k8s.io/apiserver/pkg/storage"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/extensionserver"
)

// clusterStorages are the storages of the resource clusters and of its subresource status.
//
// Invariants:
//   - A write to the main resource never changes the status. A write to the status never changes
//     any other field.
//   - The generation increases by one when the stored spec changes. As for all kinds, it also
//     increases by one when a deletion starts that finalizers delay.
//   - A non-empty ID is unique among all Clusters that any replica creates, and among all writes of
//     one server process.
type clusterStorages struct {
	// Cluster is the main resource.
	Cluster *clusterStorage
	// Status is the status subresource.
	Status *extensionserver.StatusStorage
}

// storageRules configure how the storage validates, defaults and prints Clusters.
type storageRules struct {
	// ResourceModels is called on every write, and reports whether resource models are enabled. If
	// they are, a new Cluster without resource models gets the default models, and all models are
	// stored in the standard form.
	ResourceModels func() bool
	// Now returns the time that is used for taints and for the age of objects in tables.
	Now func() metav1.Time
	// Authorizer authorizes the references to Secrets in a Cluster that an agent writes: the agent must
	// be allowed to read each of these Secrets.
	Authorizer authorizer.Authorizer
	// Addresses returns the rules for the addresses that agents choose.
	Addresses func() agent.AddressRules
	// Scope returns the scope of the token with which the agent of a cluster registered.
	Scope func(ctx context.Context, cluster string) (agent.Scope, error)
	// RequireApproval adds a taint to each Cluster that an agent creates.
	RequireApproval bool
}

// newStorages opens the storage of Clusters. The scheme must contain the API group with its version and
// with the internal version.
func newStorages(scheme *runtime.Scheme, options generic.RESTOptionsGetter, rules storageRules) (*clusterStorages, error) {
	writes := newStrategy(scheme, rules)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &clusterv1alpha1.Cluster{} },
		NewListFunc:               func() runtime.Object { return &clusterv1alpha1.ClusterList{} },
		PredicateFunc:             selectionPredicate,
		DefaultQualifiedResource:  clusterv1alpha1.Resource("clusters"),
		SingularQualifiedResource: clusterv1alpha1.Resource("cluster"),
		CreateStrategy:            writes,
		UpdateStrategy:            writes,
		DeleteStrategy:            writes,
		ResetFieldsStrategy:       writes,
		TableConvertor:            tableConvertor{now: rules.Now},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: withUniqueIDs{options}, AttrFunc: clusterAttributes}); err != nil {
		return nil, fmt.Errorf("opening the storage of clusters: %w", err)
	}

	return &clusterStorages{Cluster: newClusterStorage(store), Status: extensionserver.NewStatusStorage(store, statusStrategy{writes})}, nil
}

// clusterAttributes returns the labels and fields that selectors match.
func clusterAttributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return nil, nil, fmt.Errorf("selecting clusters: got a %T", obj)
	}
	return cluster.Labels, generic.ObjectMetaFieldsSet(&cluster.ObjectMeta, false), nil
}

func selectionPredicate(label labels.Selector, field fields.Selector) apistorage.SelectionPredicate {
	return apistorage.SelectionPredicate{Label: label, Field: field, GetAttrs: clusterAttributes}
}

// newClusterGetter returns a reader of Clusters for proxied requests. The reader reads from the
// watch cache, and from etcd only if the cache does not contain the Cluster.
func newClusterGetter(store *genericregistry.Store) func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	return func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
		obj, err := store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
		if apierrors.IsNotFound(err) {
			obj, err = store.Get(ctx, name, &metav1.GetOptions{})
		}
		if err != nil {
			return nil, err
		}
		cluster, ok := obj.(*clusterv1alpha1.Cluster)
		if !ok {
			return nil, fmt.Errorf("reading cluster %q: got a %T", name, obj)
		}
		return cluster, nil
	}
}

// newClusterLister returns a reader of all Clusters from the watch cache.
func newClusterLister(store *genericregistry.Store) func(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	return func(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
		obj, err := store.List(ctx, &metainternalversion.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		list, ok := obj.(*clusterv1alpha1.ClusterList)
		if !ok {
			return nil, fmt.Errorf("listing clusters: got a %T", obj)
		}
		return list.Items, nil
	}
}
