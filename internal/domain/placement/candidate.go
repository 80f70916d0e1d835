package placement

import (
	"cmp"
	"math"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// unmatchedTier is the tier of a cluster that matches no affinity. Such a cluster is a candidate
// only if the affinity filter is disabled.
const unmatchedTier = 1000

// candidate is a cluster that passed the filters.
type candidate struct {
	cluster *clusterv1alpha1.Cluster
	name    string
	region  string
	score   int64
	// allocatable is the number of additional replicas that fit into the cluster. available is
	// allocatable plus the replicas that are already assigned to the cluster.
	allocatable, available int64
	// tier is 0 if the affinity group itself selects the cluster, 1 if its first overflow group
	// does, and so on.
	tier int
	// rank is the index of the candidate in the order of preference.
	rank int
}

// rankedCandidates returns the feasible clusters as candidates, most preferred first. The order of
// preference is: lowest tier, highest score, most available replicas, name.
func (t *task) rankedCandidates(feasible []*clusterv1alpha1.Cluster, scores []int64) []candidate {
	estimates := t.estimateReplicas(feasible)
	candidates := make([]candidate, len(feasible))
	for i, cluster := range feasible {
		candidates[i] = candidate{
			cluster:     cluster,
			name:        cluster.Name,
			region:      cluster.Spec.Region,
			score:       scores[i],
			allocatable: t.allocatableReplicas(estimates, cluster.Name),
			tier:        t.affinityTier(cluster),
		}
		candidates[i].available = candidates[i].allocatable + t.assignedReplicas[cluster.Name]
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
		candidates[i].rank = i
	}
	return candidates
}

// estimateReplicas returns the estimates for the feasible clusters. It calls the estimator only if
// the result depends on capacity. Templates that go to every cluster, or that are divided by fixed
// weights, cause no calls to members.
func (t *task) estimateReplicas(feasible []*clusterv1alpha1.Cluster) map[string]int32 {
	unlimited := t.spec.Replicas == 0 && len(t.spec.Components) == 0
	if t.input.EstimateReplicas == nil || unlimited || !t.dependsOnCapacity() {
		return nil
	}
	return t.input.EstimateReplicas(feasible)
}

func (t *task) dependsOnCapacity() bool {
	return !t.ignoresSpreadConstraints() || len(t.affinityMatchers) > 1 || DividesByCapacity(t.spec.Placement.ReplicaScheduling)
}

// allocatableReplicas returns the estimate for the cluster. Without an estimate it returns the
// number of replicas that the workload needs.
func (t *task) allocatableReplicas(estimates map[string]int32, name string) int64 {
	estimate, ok := estimates[name]
	if !ok || estimate < 0 || estimate == math.MaxInt32 {
		return max(int64(t.spec.Replicas), t.requiredCapacity())
	}
	return int64(estimate)
}

// affinityTier returns the index of the first affinity that the cluster matches.
func (t *task) affinityTier(cluster *clusterv1alpha1.Cluster) int {
	if len(t.affinityMatchers) < 2 {
		return 0
	}
	for i := range t.affinityMatchers {
		if t.affinityMatchers[i].Matches(cluster) {
			return i
		}
	}
	return unmatchedTier
}

// totalAvailable returns the number of replicas that the candidates together already have or have
// capacity for.
func totalAvailable(candidates []candidate) int64 {
	sum := int64(0)
	for i := range candidates {
		sum = addSaturated(sum, candidates[i].available)
	}
	return sum
}

// addSaturated adds two non-negative numbers and returns math.MaxInt64 on overflow.
func addSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func compareRank(a, b candidate) int { return cmp.Compare(a.rank, b.rank) }
