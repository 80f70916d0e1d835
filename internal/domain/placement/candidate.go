package placement

import (
	"cmp"
	"math"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// localityScore is the score of a cluster that has the template already. All
// others have 0.
const localityScore = 100

// noTier is the tier of a cluster that matches no affinity, which happens when
// the affinity filter is switched off.
const noTier = 1000

// candidate is a cluster that may be used.
type candidate struct {
	cluster *clusterv1alpha1.Cluster
	name    string
	region  string
	score   int64
	// allocatable is how many more replicas fit; available adds those that are
	// there already.
	allocatable, available int64
	// tier is 0 in the affinity group itself, 1 in its first overflow group, and
	// so on.
	tier int
	// order is the place among the candidates, most preferred first.
	order int
}

// scores are those of the feasible clusters, in their order.
func (t *task) scores(feasible []*clusterv1alpha1.Cluster) []int64 {
	defer t.input.Observer.point(PointScore)()
	scores := make([]int64, len(feasible))
	if t.input.Plugins.Enabled(PluginClusterLocality) {
		t.preferPresent(feasible, scores)
	}
	return scores
}

// preferPresent scores the clusters that have the template already.
func (t *task) preferPresent(feasible []*clusterv1alpha1.Cluster, scores []int64) {
	defer t.input.Observer.plugin(PointScore, PluginClusterLocality)()
	for i, cluster := range feasible {
		if t.targets(cluster.Name) {
			scores[i] += localityScore
		}
	}
}

// candidates turns feasible clusters into candidates, most preferred first:
// lowest tier, then highest score, most room, and name.
func (t *task) candidates(feasible []*clusterv1alpha1.Cluster, scores []int64) []candidate {
	estimates := t.estimates(feasible)
	candidates := make([]candidate, len(feasible))
	for i, cluster := range feasible {
		candidates[i] = candidate{
			cluster:     cluster,
			name:        cluster.Name,
			region:      cluster.Spec.Region,
			score:       scores[i],
			allocatable: t.allocatable(estimates, cluster.Name),
			tier:        t.tier(cluster),
		}
		candidates[i].available = candidates[i].allocatable + t.assigned[cluster.Name]
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.tier, b.tier),
			cmp.Compare(b.score, a.score),
			cmp.Compare(b.available, a.available),
			cmp.Compare(a.name, b.name),
		)
	})
	for i := range candidates {
		candidates[i].order = i
	}
	return candidates
}

// estimates asks for capacity if anything depends on it. That saves asking every
// member for templates that go everywhere or by fixed weights.
func (t *task) estimates(feasible []*clusterv1alpha1.Cluster) map[string]int32 {
	unlimited := t.spec.Replicas == 0 && len(t.spec.Components) == 0
	if t.input.Estimate == nil || unlimited || !t.dependsOnCapacity() {
		return nil
	}
	return t.input.Estimate(feasible)
}

func (t *task) dependsOnCapacity() bool {
	return !t.ignoresSpread() || len(t.affinities) > 1 || byCapacity(t.spec.Placement.ReplicaScheduling)
}

// allocatable is the estimate, or as much as the workload needs if there is none.
func (t *task) allocatable(estimates map[string]int32, name string) int64 {
	estimate, ok := estimates[name]
	if !ok || estimate < 0 || estimate == math.MaxInt32 {
		return max(int64(t.spec.Replicas), t.need())
	}
	return int64(estimate)
}

// tier is the index of the first affinity that the cluster matches.
func (t *task) tier(cluster *clusterv1alpha1.Cluster) int {
	if len(t.affinities) < 2 {
		return 0
	}
	for i := range t.affinities {
		if t.affinities[i].Matches(cluster) {
			return i
		}
	}
	return noTier
}

// roomOf is the number of replicas that the candidates hold or can take.
func roomOf(candidates []candidate) int64 {
	sum := int64(0)
	for i := range candidates {
		sum = addSaturated(sum, candidates[i].available)
	}
	return sum
}

// addSaturated adds numbers that are not negative and stops at the largest.
func addSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func byOrder(a, b candidate) int { return cmp.Compare(a.order, b.order) }
