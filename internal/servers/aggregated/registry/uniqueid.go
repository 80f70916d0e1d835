package registry

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

// uniqueIDs is a storage of Clusters in which an ID occurs once: a member that
// were registered under two names would be scheduled to twice. The check and the
// write happen under one lock, which only writes that bring in an ID take.
//
// That lock is one of this process. What another replica writes in the same instant
// is found by Clusters.
type uniqueIDs struct {
	apistorage.Interface
	root string
	// claim is the lock: a channel, so that waiting ends with the request.
	claim chan struct{}
}

// withUniqueIDs are the storage options of Clusters: whatever storage they lead to
// is guarded.
type withUniqueIDs struct {
	generic.RESTOptionsGetter
}

// GetRESTOptions returns the options with the guard around the storage.
func (g withUniqueIDs) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
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
		return &uniqueIDs{Interface: storage, root: root, claim: make(chan struct{}, 1)}, destroy, nil
	}
	return options, nil
}

// Create stores a Cluster unless another one bears its ID.
func (u *uniqueIDs) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	release, err := u.claimID(ctx, obj, "")
	if err != nil {
		return err
	}
	defer release()
	return u.Interface.Create(ctx, key, obj, out, ttl)
}

// GuaranteedUpdate changes a Cluster unless the change gives it another's ID.
func (u *uniqueIDs) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *apistorage.Preconditions, update apistorage.UpdateFunc, cached runtime.Object) error {
	release := func() {}
	defer func() { release() }()
	checked := func(input runtime.Object, meta apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
		// The storage retries on conflict; the claim of the previous try is void.
		release()
		release = func() {}
		before := clusterID(input)
		output, ttl, err := update(input, meta)
		if err != nil {
			return output, ttl, err
		}
		claimed, err := u.claimID(ctx, output, before)
		if err != nil {
			return nil, nil, err
		}
		release = claimed
		return output, ttl, nil
	}
	return u.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, checked, cached)
}

// claimID returns once no other Cluster has the ID of obj and nobody else can
// take it until release is called. IDs that did not change are not claimed.
func (u *uniqueIDs) claimID(ctx context.Context, obj runtime.Object, before string) (release func(), err error) {
	id := clusterID(obj)
	if id == "" || id == before {
		return func() {}, nil
	}
	select {
	case u.claim <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = func() { <-u.claim }
	if err := u.checkID(ctx, obj.(*clusterv1alpha1.Cluster)); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func (u *uniqueIDs) checkID(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	var clusters clusterv1alpha1.ClusterList
	if err := u.GetList(ctx, u.root, everything(), &clusters); err != nil {
		return fmt.Errorf("looking for other clusters with ID %q: %w", cluster.Spec.ID, err)
	}
	return refuseTaken(cluster, clusters.Items)
}

func everything() apistorage.ListOptions {
	return apistorage.ListOptions{Predicate: apistorage.Everything, Recursive: true}
}

// refuseTaken refuses a Cluster with the ID of another one.
func refuseTaken(cluster *clusterv1alpha1.Cluster, clusters []clusterv1alpha1.Cluster) error {
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

// clusterID returns the ID of a Cluster; nothing for an object that is none, as
// the empty input of an update that creates.
func clusterID(obj runtime.Object) string {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok || cluster == nil {
		return ""
	}
	return cluster.Spec.ID
}
