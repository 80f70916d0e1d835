package aggregated

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// uniqueIDs is a storage of Clusters that rejects duplicate IDs, because workloads would be scheduled
// twice to a member that is registered under two names. A write with a new ID holds a lock during
// the check and the write.
//
// The lock is local to this process. clusterStorage.revertDuplicate handles concurrent writes by other
// replicas.
type uniqueIDs struct {
	apistorage.Interface
	rootKey string
	// lock is a channel, so that a request can stop waiting for the lock when its context ends.
	lock chan struct{}
}

// withUniqueIDs returns storage options that wrap each storage in uniqueIDs.
type withUniqueIDs struct {
	generic.RESTOptionsGetter
}

// GetRESTOptions returns the options with the wrapped storage.
func (w withUniqueIDs) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := w.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	open := options.Decorator
	options.Decorator = func(
		config *storagebackend.ConfigForResource, root string, key func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object, attributes apistorage.AttrFunc,
		triggers apistorage.IndexerFuncs, indexers *cache.Indexers,
	) (apistorage.Interface, factory.DestroyFunc, error) {
		storage, destroy, err := open(config, root, key, newObject, newList, attributes, triggers, indexers)
		if err != nil {
			return nil, nil, err
		}
		return &uniqueIDs{Interface: storage, rootKey: root, lock: make(chan struct{}, 1)}, destroy, nil
	}
	return options, nil
}

// Create stores a Cluster unless another Cluster has the same ID.
func (u *uniqueIDs) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	release, err := u.lockID(ctx, obj, "")
	if err != nil {
		return err
	}
	defer release()
	return u.Interface.Create(ctx, key, obj, out, ttl)
}

// GuaranteedUpdate changes a Cluster. It returns an error if the new ID of the Cluster is the ID
// of another Cluster.
func (u *uniqueIDs) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *apistorage.Preconditions, update apistorage.UpdateFunc, cached runtime.Object) error {
	release := func() {}
	defer func() { release() }()
	checked := func(input runtime.Object, meta apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
		// The storage retries on conflict, so release the lock of the previous attempt.
		release()
		release = func() {}
		before := clusterID(input)
		output, ttl, err := update(input, meta)
		if err != nil {
			return output, ttl, err
		}
		unlock, err := u.lockID(ctx, output, before)
		if err != nil {
			return nil, nil, err
		}
		release = unlock
		return output, ttl, nil
	}
	return u.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, checked, cached)
}

// lockID returns an error if another Cluster has the ID of obj. Otherwise it blocks other writes of
// new IDs until release is called. If the ID is equal to before, lockID does nothing.
func (u *uniqueIDs) lockID(ctx context.Context, obj runtime.Object, before string) (release func(), err error) {
	id := clusterID(obj)
	if id == "" || id == before {
		return func() {}, nil
	}
	select {
	case u.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = func() { <-u.lock }
	if err := u.validateID(ctx, obj.(*clusterv1alpha1.Cluster)); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func (u *uniqueIDs) validateID(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	var clusters clusterv1alpha1.ClusterList
	if err := u.GetList(ctx, u.rootKey, listAllOptions(), &clusters); err != nil {
		return fmt.Errorf("listing clusters with ID %q: %w", cluster.Spec.ID, err)
	}
	return validateUniqueID(cluster, clusters.Items)
}

func listAllOptions() apistorage.ListOptions {
	return apistorage.ListOptions{Predicate: apistorage.Everything, Recursive: true}
}

// validateUniqueID returns an error if another Cluster has the same ID.
func validateUniqueID(cluster *clusterv1alpha1.Cluster, clusters []clusterv1alpha1.Cluster) error {
	for i := range clusters {
		other := &clusters[i]
		if other.Spec.ID != cluster.Spec.ID || other.Name == cluster.Name {
			continue
		}
		duplicate := field.Duplicate(field.NewPath("spec", "id"), cluster.Spec.ID)
		duplicate.Detail = fmt.Sprintf("the cluster ID %s or the cluster name %s has been registered", cluster.Spec.ID, other.Name)
		return apierrors.NewInvalid(clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind(), cluster.Name, field.ErrorList{duplicate})
	}
	return nil
}

// clusterID returns the ID of the given Cluster, or an empty string if obj is not a Cluster, for
// example if it is the empty input of an update that creates a Cluster.
func clusterID(obj runtime.Object) string {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok || cluster == nil {
		return ""
	}
	return cluster.Spec.ID
}
