package scheduler

import (
	"sync"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/assumption"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
)

// assumptions holds the workloads that this scheduler placed recently, so that bindings that are
// scheduled shortly after each other do not all use the same free resources. Only ResourceBindings
// are tracked. A nil *assumptions tracks nothing.
type assumptions struct {
	mu    sync.Mutex
	cache *assumption.Cache
}

// newAssumptions returns nil if the protection is disabled.
func newAssumptions(enabled bool) *assumptions {
	if !enabled {
		return nil
	}
	return &assumptions{cache: assumption.NewCache()}
}

// record records the targets of a binding after their write.
func (a *assumptions) record(r request, before, after binding.Object, now time.Time) {
	if a == nil || !r.namespaced || !binding.IsWorkload(after.BindingSpec()) {
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
	clusters := assumption.HealthyAgain(older.BindingStatus().AggregatedStatus, newer.BindingStatus().AggregatedStatus)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cluster := range clusters {
		a.cache.ReleaseCluster(requestOf(newer).NamespacedName, cluster)
	}
}

// assumed returns the workloads that are assumed in the clusters, without the given binding.
func (a *assumptions) assumed(clusters []*clusterv1alpha1.Cluster, without request, now time.Time) map[string][]capacity.AssumedWorkload {
	if a == nil {
		return nil
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
	return byCluster
}
