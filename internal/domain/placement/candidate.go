package placement

import (
	"cmp"
	"math"
	"slices"
	"strings"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// unmatchedTier is the tier of candidates that match no affinity, which exist only if the affinity
// filter is disabled.
const unmatchedTier = 1000

// candidate is a cluster that passed the filters.
type candidate struct {
	cluster *clusterv1alpha1.Cluster
	name    string
	region  string
	score   int64
	// allocatable is the number of additional replicas that fit into the cluster. available also
	// includes the replicas that are already assigned to it.
	allocatable, available int64
	// tier is 0 if the affinity group itself selects the cluster, 1 if its first overflow group does,
	// and so on.
	tier int32
	// rank is the index of the candidate in the order of preference.
	rank int32
}

// preference holds the values that, together with its name, determine a feasible cluster's rank. It is
// small and has no pointers, because preferences are sorted for every binding.
type preference struct {
	index            int32 // of the feasible cluster
	tier             int32
	score, available int64
}

// rankedCandidates returns the feasible clusters as candidates, most preferred first: by the lowest
// tier, then the highest score, then the most available replicas, and then by name.
func (t *task) rankedCandidates(feasible []*clusterv1alpha1.Cluster, scores []int64) []candidate {
	estimates := t.estimateReplicas(feasible)
	preferences := make([]preference, len(feasible))
	for i, cluster := range feasible {
		preferences[i] = preference{
			index: int32(i), tier: t.affinityTier(cluster), score: scores[i],
			available: t.allocatableReplicas(estimates, i) + t.assignedReplicas[cluster.Name],
		}
	}
	slices.SortFunc(preferences, func(a, b preference) int {
		if order := a.compare(b); order != 0 {
			return order
		}
		return strings.Compare(feasible[a.index].Name, feasible[b.index].Name)
	})
	candidates := make([]candidate, len(feasible))
	for rank, preferred := range preferences {
		cluster := feasible[preferred.index]
		candidates[rank] = candidate{
			cluster: cluster, name: cluster.Name, region: cluster.Spec.Region, score: preferred.score,
			allocatable: t.allocatableReplicas(estimates, int(preferred.index)), available: preferred.available,
			tier: preferred.tier, rank: int32(rank),
		}
	}
	return candidates
}

func (p preference) compare(other preference) int {
	switch {
	case p.tier != other.tier:
		return cmp.Compare(p.tier, other.tier)
	case p.score != other.score:
		return cmp.Compare(other.score, p.score)
	default:
		return cmp.Compare(other.available, p.available)
	}
}

// estimateReplicas returns the estimates for the feasible clusters, or nil if the result does not
// depend on capacity. Estimators are therefore not called for templates that run in every cluster or
// are divided by static weights.
func (t *task) estimateReplicas(feasible []*clusterv1alpha1.Cluster) []int32 {
	unlimited := t.spec.Replicas == 0 && len(t.spec.Components) == 0
	if t.input.EstimateReplicas == nil || unlimited || !t.dependsOnCapacity() {
		return nil
	}
	return t.input.EstimateReplicas(feasible)
}

func (t *task) dependsOnCapacity() bool {
	return !t.ignoresSpreadConstraints() || len(t.affinityMatchers) > 1 || DividesByCapacity(t.spec.Placement.ReplicaScheduling)
}

// allocatableReplicas returns the estimate for the feasible cluster at index i. If its capacity is
// unknown, it returns the number of replicas that the workload needs.
func (t *task) allocatableReplicas(estimates []int32, i int) int64 {
	if i >= len(estimates) || estimates[i] < 0 || estimates[i] == math.MaxInt32 {
		return max(int64(t.spec.Replicas), t.requiredCapacity())
	}
	return int64(estimates[i])
}

// affinityTier returns the index of the first affinity that the cluster matches.
func (t *task) affinityTier(cluster *clusterv1alpha1.Cluster) int32 {
	if len(t.affinityMatchers) < 2 {
		return 0
	}
	for i := range t.affinityMatchers {
		if t.affinityMatchers[i].Matches(cluster) {
			return int32(i)
		}
	}
	return unmatchedTier
}

// totalAvailable returns the sum of the candidates' available replicas.
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
