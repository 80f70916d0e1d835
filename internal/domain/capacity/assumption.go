package capacity

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

const (
	// AssumptionLifetime is the time after which a workload is not assumed anymore.
	AssumptionLifetime = 5 * time.Minute
	// sweepInterval is the minimum time between two removals of expired assumptions.
	sweepInterval = time.Minute
)

// AssumptionCache holds the assumed workloads of all clusters. It must not be used concurrently. The zero
// value is not valid.
//
// A workload is assumed in a cluster from the write of the scheduling result until the cluster
// reports that the workload is healthy, or until the assumption expires. Invariants:
//
//   - Only the increase counts, because replicas that ran in the cluster before are in its resource
//     summary.
//   - A binding that is scheduled again is not counted against itself.
//   - The number of assumptions is bounded by the targets that were written within
//     AssumptionLifetime.
type AssumptionCache struct {
	byCluster map[string]map[types.NamespacedName]footprint
	// clusters are the names of the clusters in which a binding is assumed.
	clusters map[types.NamespacedName]map[string]struct{}
	sweptAt  time.Time
}

// footprint is the assumed part of one workload in one cluster.
type footprint struct {
	// before is the number of replicas of each component before the first assumed increase.
	before     map[string]int32
	components []workv1alpha2.Component
	expires    time.Time
}

// NewAssumptionCache returns an empty cache.
func NewAssumptionCache() *AssumptionCache {
	return &AssumptionCache{byCluster: map[string]map[types.NamespacedName]footprint{},
		clusters: map[types.NamespacedName]map[string]struct{}{}}
}

// Record records the targets of a binding after their write. before and after are the specs of the
// binding before and after the write. Increases that were recorded earlier and that are still
// assumed remain assumed, and all assumptions of the binding expire after AssumptionLifetime.
func (c *AssumptionCache) Record(binding types.NamespacedName, before, after *workv1alpha2.ResourceBindingSpec, now time.Time) {
	c.sweep(now)
	replicasBefore := make(map[string]map[string]int32, len(before.Clusters))
	for i := range before.Clusters {
		replicasBefore[before.Clusters[i].Name] = replicasByComponent(componentsIn(before, &before.Clusters[i]))
	}
	previous := c.clusters[binding]
	delete(c.clusters, binding)
	for i := range after.Clusters {
		target := &after.Clusters[i]
		base := replicasBefore[target.Name]
		if known, ok := c.byCluster[target.Name][binding]; ok && now.Before(known.expires) {
			base = known.before
		}
		if increase := increases(componentsIn(after, target), base); len(increase) > 0 {
			c.put(binding, target.Name, footprint{before: base, components: increase, expires: now.Add(AssumptionLifetime)})
		}
	}
	for cluster := range previous {
		if _, kept := c.clusters[binding][cluster]; !kept {
			c.removeFromCluster(binding, cluster)
		}
	}
}

func (c *AssumptionCache) put(binding types.NamespacedName, cluster string, f footprint) {
	if c.byCluster[cluster] == nil {
		c.byCluster[cluster] = map[types.NamespacedName]footprint{}
	}
	c.byCluster[cluster][binding] = f
	if c.clusters[binding] == nil {
		c.clusters[binding] = map[string]struct{}{}
	}
	c.clusters[binding][cluster] = struct{}{}
}

// Release ends all assumptions of a binding.
func (c *AssumptionCache) Release(binding types.NamespacedName) {
	for cluster := range c.clusters[binding] {
		c.removeFromCluster(binding, cluster)
	}
	delete(c.clusters, binding)
}

// ReleaseCluster ends the assumption of a binding in one cluster.
func (c *AssumptionCache) ReleaseCluster(binding types.NamespacedName, cluster string) {
	c.removeFromCluster(binding, cluster)
	delete(c.clusters[binding], cluster)
	if len(c.clusters[binding]) == 0 {
		delete(c.clusters, binding)
	}
}

func (c *AssumptionCache) removeFromCluster(binding types.NamespacedName, cluster string) {
	delete(c.byCluster[cluster], binding)
	if len(c.byCluster[cluster]) == 0 {
		delete(c.byCluster, cluster)
	}
}

// Assumed returns the workloads that are assumed in a cluster, without the workload of the given
// binding. They are sorted by the names of their bindings.
func (c *AssumptionCache) Assumed(cluster string, without types.NamespacedName, now time.Time) []AssumedWorkload {
	var bindings []types.NamespacedName
	for binding, f := range c.byCluster[cluster] {
		if binding != without && now.Before(f.expires) {
			bindings = append(bindings, binding)
		}
	}
	slices.SortFunc(bindings, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	workloads := make([]AssumedWorkload, len(bindings))
	for i, binding := range bindings {
		workloads[i] = AssumedWorkload{Namespace: binding.Namespace, Components: c.byCluster[cluster][binding].components}
	}
	return workloads
}

// sweep removes expired assumptions. It does nothing if the last removal was a short time ago.
func (c *AssumptionCache) sweep(now time.Time) {
	if now.Sub(c.sweptAt) < sweepInterval {
		return
	}
	c.sweptAt = now
	for cluster, bindings := range c.byCluster {
		for binding, f := range bindings {
			if !now.Before(f.expires) {
				c.ReleaseCluster(binding, cluster)
			}
		}
	}
}

// HealthyAgain returns the clusters that report a workload as healthy in newer and did not in older.
func HealthyAgain(older, newer []workv1alpha2.AggregatedStatusItem) []string {
	wasHealthy := make(map[string]bool, len(older))
	for i := range older {
		wasHealthy[older[i].ClusterName] = older[i].Health == workv1alpha2.ResourceHealthy
	}
	var clusters []string
	for i := range newer {
		if newer[i].Health == workv1alpha2.ResourceHealthy && !wasHealthy[newer[i].ClusterName] {
			clusters = append(clusters, newer[i].ClusterName)
		}
	}
	return clusters
}
