package objectcache

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/registries"
)

// clusterWatches are the watches of one cluster.
type clusterWatches struct {
	parent *evaluator
	// cluster and selection are the inputs of the last evaluation.
	cluster   *clusterv1alpha1.Cluster
	selection registries.Selection
	sources   map[schema.GroupVersionKind]*sourceWatch
}

func newClusterWatches(parent *evaluator) *clusterWatches {
	return &clusterWatches{parent: parent, sources: map[schema.GroupVersionKind]*sourceWatch{}}
}

// apply starts and stops watches according to a selection.
func (c *clusterWatches) apply(ctx context.Context, cluster *clusterv1alpha1.Cluster, selection registries.Selection) {
	wanted := map[schema.GroupVersionKind]bool{}
	for _, kind := range selection.Kinds {
		wanted[kind.GroupVersionKind] = true
	}
	for _, kind := range slices.Collect(maps.Keys(c.sources)) {
		if !wanted[kind] {
			c.sources[kind].remove()
			c.setSource(kind, nil)
		}
	}
	retry, reconnect := c.isRetryUseful(cluster, selection), c.cluster != nil && !hasSameConnection(c.cluster, cluster)
	for _, kind := range selection.Kinds {
		source := c.sources[kind.GroupVersionKind]
		if source == nil {
			source = c.addSource(cluster, kind)
		}
		source.update(cluster, kind.Namespaces, kind.Registries, retry)
		if selection.NotReady != "" {
			source.stop(selection.NotReady)
			continue
		}
		if reconnect {
			source.restart(ctx, &c.parent.group)
		}
		source.start(ctx, &c.parent.group)
	}
}

// hasSameConnection reports whether two states of a Cluster describe the same connection.
func hasSameConnection(a, b *clusterv1alpha1.Cluster) bool {
	connection := func(c *clusterv1alpha1.Cluster) clusterv1alpha1.ClusterSpec {
		return clusterv1alpha1.ClusterSpec{
			ID: c.Spec.ID, SyncMode: c.Spec.SyncMode, APIEndpoint: c.Spec.APIEndpoint, SecretRef: c.Spec.SecretRef,
			InsecureSkipTLSVerification: c.Spec.InsecureSkipTLSVerification, ProxyURL: c.Spec.ProxyURL, ProxyHeader: c.Spec.ProxyHeader,
		}
	}
	return equality.Semantic.DeepEqual(connection(a), connection(b))
}

// isRetryUseful reports whether a change of the cluster may be the end of a failure.
func (c *clusterWatches) isRetryUseful(cluster *clusterv1alpha1.Cluster, selection registries.Selection) bool {
	return c.cluster == nil || c.cluster.Generation != cluster.Generation || !equality.Semantic.DeepEqual(c.selection, selection) ||
		!equality.Semantic.DeepEqual(c.cluster.Status.APIEnablements, cluster.Status.APIEnablements)
}

// addSource adds the watch of a kind, without starting it.
func (c *clusterWatches) addSource(cluster *clusterv1alpha1.Cluster, kind registries.Kind) *sourceWatch {
	added := newSourceWatch(c.parent.cache, kind.GroupVersionKind, cluster)
	added.namespaces, added.registries = kind.Namespaces, kind.Registries
	if kind.Resource != "" {
		// The list of APIs does not contain the scope. The watch corrects the scope.
		source := Source{Cluster: cluster.Name, Kind: kind.GroupVersionKind, Resource: kind.Resource, Namespaced: added.guessNamespaced()}
		if _, err := added.setSource(source, false); err != nil {
			added.skip(err)
		}
	}
	c.setSource(kind.GroupVersionKind, added)
	return added
}

// setSource sets or removes a watch, which other goroutines read.
func (c *clusterWatches) setSource(kind schema.GroupVersionKind, source *sourceWatch) {
	c.parent.mu.Lock()
	defer c.parent.mu.Unlock()
	if source == nil {
		delete(c.sources, kind)
		return
	}
	c.sources[kind] = source
}

func (c *clusterWatches) removeAll() {
	for _, source := range c.sources {
		source.remove()
	}
}

// guessNamespaced returns the scope that the kind has in other clusters, or has by default.
func (s *sourceWatch) guessNamespaced() bool {
	if kind := s.cache.KindOf(s.kind); kind != nil {
		return kind.Namespaced()
	}
	return !isClusterScoped(s.kind)
}

// guessResource returns the resource of a built-in kind, the resource of another kind in any cluster, or the
// usual plural of the kind.
func (e *evaluator) guessResource(kind schema.GroupVersionKind) string {
	found, _ := builtInResource(kind)
	for _, name := range slices.Sorted(maps.Keys(e.clusters)) {
		found = cmp.Or(found, registries.ResourceOf(e.clusters[name].cluster, kind))
	}
	return cmp.Or(found, usualResource(kind))
}
