package search

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientrest "k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/access/reconnect"
	"karmada.io/karmada/internal/domain/admission"
)

// karmadaCache has the Clusters of the Karmada API server and the ResourceRegistries of this server.
// It implements client.Reader for these two kinds. Reads wait until the kind is cached.
type karmadaCache struct {
	clusters, registries cache.Cache
	clusterInformer      toolscache.SharedIndexInformer
}

// newKarmadaCache returns a cache that watches nothing before run. onCluster and onRegistry are
// called with the name of each object that was created, changed or deleted, and onClusterGone with the
// name of each Cluster that was deleted.
func newKarmadaCache(ctx context.Context, from sources, onCluster, onRegistry, onClusterGone func(name string)) (*karmadaCache, error) {
	clusters, err := newInformerCache(from.karmada, clusterv1alpha1.AddToScheme, clusterv1alpha1.GroupVersion.WithKind("Cluster"))
	if err != nil {
		return nil, fmt.Errorf("creating the cache of Clusters: %w", err)
	}
	registries, err := newInformerCache(from.registries, searchv1alpha1.AddToScheme,
		searchv1alpha1.GroupVersion.WithKind(searchv1alpha1.ResourceRegistryKind))
	if err != nil {
		return nil, fmt.Errorf("creating the cache of ResourceRegistries: %w", err)
	}
	k := &karmadaCache{clusters: clusters, registries: registries}
	if k.clusterInformer, err = addInformer(ctx, clusters, &clusterv1alpha1.Cluster{}, onCluster, onClusterGone); err != nil {
		return nil, err
	}
	if _, err := addInformer(ctx, registries, &searchv1alpha1.ResourceRegistry{}, onRegistry, nil); err != nil {
		return nil, err
	}
	return k, nil
}

// newInformerCache returns a cache of one cluster-scoped kind. It needs no discovery, because the kind
// may not be served yet.
func newInformerCache(config *clientrest.Config, addToScheme func(*runtime.Scheme) error,
	kind schema.GroupVersionKind) (cache.Cache, error) {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	reconnecting := clientrest.CopyConfig(config)
	// Otherwise the watch would have a backoff of up to 30 s when its server is down.
	reconnecting.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return reconnect.NewTransport(next, reconnect.Options{WatchTimeout: -1, RetryUnavailable: true})
	})
	return cache.New(reconnecting, cache.Options{Scheme: scheme, Mapper: newMapper(kind),
		DefaultTransform: cache.TransformStripManagedFields()})
}

// newMapper returns a mapper of one cluster-scoped kind.
func newMapper(kind schema.GroupVersionKind) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	mapper.Add(kind, meta.RESTScopeRoot)
	return mapper
}

// addInformer adds handlers for the names of changed objects, and of deleted objects. onGone may be nil.
func addInformer(ctx context.Context, from cache.Cache, example client.Object, onChange,
	onGone func(name string)) (toolscache.SharedIndexInformer, error) {
	found, err := from.GetInformer(ctx, example, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", example, err)
	}
	informer, ok := found.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("watching %T: got a %T", example, found)
	}
	notify := func(object any, notify func(name string)) {
		if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			notify(key) // the objects have no namespace
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { notify(object, onChange) },
		UpdateFunc: func(_, object any) { notify(object, onChange) },
		DeleteFunc: func(object any) {
			notify(object, onChange)
			if onGone != nil {
				notify(object, onGone)
			}
		},
	}); err != nil {
		return nil, fmt.Errorf("watching %T: %w", example, err)
	}
	return informer, nil
}

// run watches until ctx ends.
func (k *karmadaCache) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	for _, c := range []cache.Cache{k.clusters, k.registries} {
		go func() { ended <- c.Start(ctx) }()
	}
	first := <-ended
	cancel()
	return errors.Join(first, <-ended)
}

// awaitSync waits until both kinds are cached. It returns false if ctx ends before.
func (k *karmadaCache) awaitSync(ctx context.Context) bool {
	return k.clusters.WaitForCacheSync(ctx) && k.registries.WaitForCacheSync(ctx)
}

// Get implements client.Reader.
func (k *karmadaCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*searchv1alpha1.ResourceRegistry); ok {
		return k.registries.Get(ctx, key, object, options...)
	}
	return k.clusters.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (k *karmadaCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*searchv1alpha1.ResourceRegistryList); ok {
		return k.registries.List(ctx, list, options...)
	}
	return k.clusters.List(ctx, list, options...)
}

// cluster returns a Cluster, or a NotFound error.
func (k *karmadaCache) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	return cluster, k.clusters.Get(ctx, types.NamespacedName{Name: name}, cluster)
}

// allClusters returns all Clusters.
func (k *karmadaCache) allClusters(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	list := &clusterv1alpha1.ClusterList{}
	err := k.clusters.List(ctx, list)
	return list.Items, err
}

// rules returns the validation of registries, which knows the Clusters as soon as they are cached.
func (k *karmadaCache) rules() admission.Options {
	return admission.Options{
		ClusterNames: func([]string) sets.Set[string] {
			names := sets.Set[string]{}
			if !k.visitClusters(func(cluster *clusterv1alpha1.Cluster) { names.Insert(cluster.Name) }) {
				return nil
			}
			return names
		},
		ServedByClusters: func() sets.Set[schema.GroupVersionKind] {
			kinds := sets.Set[schema.GroupVersionKind]{}
			k.visitClusters(func(cluster *clusterv1alpha1.Cluster) { addServedKinds(kinds, cluster) })
			return kinds
		},
	}
}

// clusterNames returns the names of the cached Clusters.
func (k *karmadaCache) clusterNames() []string {
	var names []string
	k.visitClusters(func(cluster *clusterv1alpha1.Cluster) { names = append(names, cluster.Name) })
	return names
}

// visitClusters calls visit for each cached Cluster. It returns false, without waiting, if the Clusters
// are not cached yet.
func (k *karmadaCache) visitClusters(visit func(*clusterv1alpha1.Cluster)) bool {
	if !k.clusterInformer.HasSynced() {
		return false
	}
	for _, object := range k.clusterInformer.GetStore().List() {
		if cluster, ok := object.(*clusterv1alpha1.Cluster); ok {
			visit(cluster)
		}
	}
	return true
}

func addServedKinds(kinds sets.Set[schema.GroupVersionKind], cluster *clusterv1alpha1.Cluster) {
	for _, enablement := range cluster.Status.APIEnablements {
		version, err := schema.ParseGroupVersion(enablement.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range enablement.Resources {
			kinds.Insert(version.WithKind(resource.Kind))
		}
	}
}
