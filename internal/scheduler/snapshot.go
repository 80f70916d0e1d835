package scheduler

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// snapshot is all clusters at one time. It is immutable: any number of passes use
// it at once without locks or copies.
type snapshot struct {
	// clusters are sorted by name, and are those of the informer cache.
	clusters []*clusterv1alpha1.Cluster
	// room counts how often there may have become more room. A pass that found
	// none and ends with a later count has to look again.
	room uint64
}

// find returns the cluster of that name, nil if there is none.
func (s *snapshot) find(name string) *clusterv1alpha1.Cluster {
	if at, ok := s.index(name); ok {
		return s.clusters[at]
	}
	return nil
}

func (s *snapshot) index(name string) (int, bool) {
	return slices.BinarySearchFunc(s.clusters, name, func(cluster *clusterv1alpha1.Cluster, name string) int {
		return cmp.Compare(cluster.Name, name)
	})
}

// world follows the clusters; every change makes a new snapshot.
type world struct {
	mu      sync.Mutex
	current atomic.Pointer[snapshot]
}

func newWorld() *world {
	w := &world{}
	w.current.Store(&snapshot{})
	return w
}

// snapshot is the world as it is now.
func (w *world) snapshot() *snapshot { return w.current.Load() }

// put adds a cluster or replaces its older state. roomier tells that it may have
// more room than before.
func (w *world) put(cluster *clusterv1alpha1.Cluster, roomier bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.current.Load()
	next := &snapshot{room: before.room}
	if roomier {
		next.room++
	}
	at, known := before.index(cluster.Name)
	if known {
		next.clusters = slices.Clone(before.clusters)
		next.clusters[at] = cluster
	} else {
		next.clusters = slices.Insert(slices.Clip(before.clusters), at, cluster)
	}
	w.current.Store(next)
}

// remove drops a cluster that is gone.
func (w *world) remove(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.current.Load()
	at, known := before.index(name)
	if !known {
		return
	}
	w.current.Store(&snapshot{room: before.room, clusters: slices.Delete(slices.Clone(before.clusters), at, at+1)})
}
