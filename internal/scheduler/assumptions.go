package scheduler

import (
	"sync"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
)

// assumptions holds the workloads that this scheduler placed recently, so that bindings that are
// scheduled shortly after each other do not all use the same free resources. Only ResourceBindings
// are tracked. A nil *assumptions tracks nothing.
type assumptions struct {
	mu    sync.Mutex
	cache *capacity.AssumptionCache
	// revision increases with every reservation. reserved holds the revision of the last
	// reservation in each cluster.
	revision uint64
	reserved map[string]uint64
}

// newAssumptions returns nil if the protection is disabled.
func newAssumptions(enabled bool) *assumptions {
	if !enabled {
		return nil
	}
	return &assumptions{cache: capacity.NewAssumptionCache(), reserved: map[string]uint64{}}
}

// tracks reports whether the targets of a binding are assumed.
func (a *assumptions) tracks(r request, bound binding.Object) bool {
	return a != nil && r.namespaced && binding.IsWorkload(bound.BindingSpec())
}

// reserve records the targets of a binding before their write. It returns false, and records
// nothing, if another binding reserved resources of one of the new targets after the capacity was
// estimated: both bindings may have been promised the same resources. A nil estimatedAt means that
// the targets do not depend on capacity.
func (a *assumptions) reserve(r request, before, after binding.Object, estimatedAt *uint64, now time.Time) bool {
	if !a.tracks(r, after) {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	gaining := binding.GainingClusters(before.BindingSpec().Clusters, after.BindingSpec().Clusters)
	for _, name := range gaining {
		if estimatedAt != nil && a.reserved[name] > *estimatedAt {
			return false
		}
	}
	a.cache.Record(r.NamespacedName, before.BindingSpec(), after.BindingSpec(), now)
	a.revision++
	for _, name := range gaining {
		a.reserved[name] = a.revision
	}
	return true
}

// record records the targets of a binding after their write. With two equal states of the binding,
// it undoes a reservation whose write failed.
func (a *assumptions) record(r request, before, after binding.Object, now time.Time) {
	if !a.tracks(r, after) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cache.Record(r.NamespacedName, before.BindingSpec(), after.BindingSpec(), now)
}

// release removes a binding.
func (a *assumptions) release(r request) {
	if a == nil || !r.namespaced {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cache.Release(r.NamespacedName)
}

// releaseHealthy removes a binding from the clusters in which its workload has become healthy,
// because the resource summary of such a cluster contains the workload.
func (a *assumptions) releaseHealthy(older, newer binding.Object) {
	if a == nil || !binding.IsNamespaced(newer) {
		return
	}
	clusters := capacity.HealthyAgain(older.BindingStatus().AggregatedStatus, newer.BindingStatus().AggregatedStatus)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cluster := range clusters {
		a.cache.ReleaseCluster(requestOf(newer).NamespacedName, cluster)
	}
}

// assumed returns the workloads that are assumed in the clusters, without the given binding, and the
// revision of this state for reserve.
func (a *assumptions) assumed(clusters []*clusterv1alpha1.Cluster, without request, now time.Time) (workloads map[string][]capacity.AssumedWorkload, revision uint64) {
	if a == nil {
		return nil, 0
	}
	key := without.NamespacedName
	a.mu.Lock()
	defer a.mu.Unlock()
	byCluster := map[string][]capacity.AssumedWorkload{}
	for _, cluster := range clusters {
		if workloads := a.cache.Assumed(cluster.Name, key, now); len(workloads) > 0 {
			byCluster[cluster.Name] = workloads
		}
	}
	return byCluster, a.revision
}
