package scheduler

import (
	"sync"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
)

// assumptions tracks newly scheduled workloads, so that bindings that are scheduled shortly after each
// other do not all use the same free resources. Only ResourceBindings are tracked. A nil *assumptions
// tracks nothing.
type assumptions struct {
	mu    sync.Mutex
	cache *capacity.AssumptionCache
	// revision increases with each reservation. reserved holds the revision of each cluster's last
	// reservation.
	revision uint64
	reserved map[string]uint64
}

// newAssumptions returns nil if enabled is false.
func newAssumptions(enabled bool) *assumptions {
	if !enabled {
		return nil
	}
	return &assumptions{cache: capacity.NewAssumptionCache(), reserved: map[string]uint64{}}
}

// tracks reports whether the binding's targets are tracked.
func (a *assumptions) tracks(r request, bound binding.Object) bool {
	return a != nil && r.namespaced && binding.IsWorkload(bound.BindingSpec())
}

// reserve records the binding's new targets before they are written. It returns false and records
// nothing if another binding has reserved resources in a gaining cluster since the revision
// estimatedAt, because both bindings may then use the same resources. A nil estimatedAt means that
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

// record records the binding's new targets after they were written. If before and after are equal, it
// reverts a reservation whose write failed.
func (a *assumptions) record(r request, before, after binding.Object, now time.Time) {
	if !a.tracks(r, after) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cache.Record(r.NamespacedName, before.BindingSpec(), after.BindingSpec(), now)
}

// release stops tracking the binding.
func (a *assumptions) release(r request) {
	if a == nil || !r.namespaced {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cache.Release(r.NamespacedName)
}

// releaseHealthy stops tracking the binding in clusters in which its workload has become healthy,
// because their resource summaries then include the workload.
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

// assumedWorkloads returns the tracked workloads by cluster name, except those of the binding without,
// and the revision to pass to reserve.
func (a *assumptions) assumedWorkloads(
	clusters []*clusterv1alpha1.Cluster, without request, now time.Time,
) (workloads map[string][]capacity.AssumedWorkload, revision uint64) {
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
