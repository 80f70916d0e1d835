package scheduler

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// snapshot holds the state of all clusters at a point in time. It is immutable, so concurrent passes
// share it without locks or copies.
type snapshot struct {
	// clusters are sorted by name. They are shared with the informer cache and must not be
	// modified.
	clusters []*clusterv1alpha1.Cluster
	// capacityRevision increases whenever a cluster's capacity may have grown. A pass that finds no
	// capacity is repeated if it increased during the pass.
	capacityRevision uint64
}

// find returns the cluster with the given name, or nil.
func (s *snapshot) find(name string) *clusterv1alpha1.Cluster {
	if at, ok := s.index(name); ok {
		return s.clusters[at]
	}
	return nil
}

// isTerminating reports whether the cluster exists and is being deleted.
func (s *snapshot) isTerminating(name string) bool {
	cluster := s.find(name)
	return cluster != nil && cluster.DeletionTimestamp != nil
}

func (s *snapshot) index(name string) (int, bool) {
	return slices.BinarySearchFunc(s.clusters, name, func(cluster *clusterv1alpha1.Cluster, name string) int {
		return cmp.Compare(cluster.Name, name)
	})
}

// clusterSnapshots tracks the clusters. Every change creates a new snapshot.
type clusterSnapshots struct {
	mu      sync.Mutex
	current atomic.Pointer[snapshot]
}

func newClusterSnapshots() *clusterSnapshots {
	w := &clusterSnapshots{}
	w.current.Store(&snapshot{})
	return w
}

// snapshot returns the latest snapshot.
func (c *clusterSnapshots) snapshot() *snapshot { return c.current.Load() }

// put adds or replaces the cluster. Set hasMoreCapacity if its capacity may have grown.
func (c *clusterSnapshots) put(cluster *clusterv1alpha1.Cluster, hasMoreCapacity bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.current.Load()
	next := &snapshot{capacityRevision: before.capacityRevision}
	if hasMoreCapacity {
		next.capacityRevision++
	}
	at, known := before.index(cluster.Name)
	if known {
		next.clusters = slices.Clone(before.clusters)
		next.clusters[at] = cluster
	} else {
		next.clusters = slices.Insert(slices.Clip(before.clusters), at, cluster)
	}
	c.current.Store(next)
}

// remove removes the named cluster, if it is tracked.
func (c *clusterSnapshots) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.current.Load()
	at, known := before.index(name)
	if !known {
		return
	}
	c.current.Store(&snapshot{capacityRevision: before.capacityRevision, clusters: slices.Delete(slices.Clone(before.clusters), at, at+1)})
}
