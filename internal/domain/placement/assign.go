package placement

import (
	"cmp"
	"fmt"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/clusteraffinity"
)

// divideFunc divides want replicas over the candidates.
type divideFunc func(t *task, candidates []candidate, want int64) ([]Share, error)

// divideFuncFor returns the divideFunc for a strategy. If the type is Divided and the strategy sets
// no preference, replicas are divided by weight.
func divideFuncFor(strategy *policyv1alpha1.ReplicaSchedulingStrategy) (divideFunc, error) {
	if strategy.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided {
		switch strategy.ReplicaDivisionPreference {
		case policyv1alpha1.ReplicaDivisionPreferenceAggregated:
			return divideAggregated, nil
		case policyv1alpha1.ReplicaDivisionPreferenceWeighted, "":
			if DividesByCapacity(strategy) {
				return divideByCapacity, nil
			}
			return divideByWeight, nil
		}
	}
	return nil, fmt.Errorf("unsupported replica scheduling strategy, type %q and preference %q",
		strategy.ReplicaSchedulingType, strategy.ReplicaDivisionPreference)
}

// DividesByCapacity reports whether the strategy divides replicas in proportion to the available
// replicas of the clusters. A nil strategy does not.
func DividesByCapacity(strategy *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	if strategy == nil || strategy.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided {
		return false
	}
	return strategy.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated ||
		strategy.WeightPreference != nil && strategy.WeightPreference.DynamicWeight != ""
}

// assignReplicas converts the selected candidates to targets with replicas.
func (t *task) assignReplicas(candidates []candidate) ([]workv1alpha2.TargetCluster, error) {
	if !t.hasReplicas() {
		return t.wholeTargets(candidates), nil
	}
	shares, err := t.replicaShares(candidates)
	if err != nil {
		return nil, err
	}
	return t.targetsFromShares(candidates, shares), nil
}

func (t *task) hasReplicas() bool { return HasReplicas(t.spec) }

// HasReplicas reports whether the targets of a binding have a number of replicas. Targets of kinds
// without replicas, and of kinds with several components, have no number.
func HasReplicas(spec *workv1alpha2.ResourceBindingSpec) bool {
	return (spec.Replicas > 0 || spec.ReplicaRequirements != nil) && len(spec.Components) <= 1
}

// WantsNoCopy reports whether a workload has no clusters because its replicas are divided and it was
// scaled to 0. Nothing is missing then.
func WantsNoCopy(spec *workv1alpha2.ResourceBindingSpec) bool {
	return len(spec.Clusters) == 0 && spec.Replicas == 0 && HasReplicas(spec) && spec.Placement != nil && !isDuplicated(spec.Placement)
}

// wholeTargets returns one target without a number of replicas for each candidate. The targets are
// sorted by name, so that the result does not depend on the order of preference.
func (t *task) wholeTargets(candidates []candidate) []workv1alpha2.TargetCluster {
	var components []workv1alpha2.TargetComponent
	if PlacesComponents(t.spec, t.input.Features) {
		components = targetComponents(t.spec)
	}
	targets := make([]workv1alpha2.TargetCluster, len(candidates))
	for i := range candidates {
		targets[i] = workv1alpha2.TargetCluster{Name: candidates[i].name, Components: slices.Clone(components)}
	}
	slices.SortFunc(targets, func(a, b workv1alpha2.TargetCluster) int { return cmp.Compare(a.Name, b.Name) })
	return targets
}

// targetsFromShares converts the shares to targets. Candidates without replicas are omitted. If
// empty workloads are propagated, such candidates are instead added at the end, in the order of
// preference.
func (t *task) targetsFromShares(candidates []candidate, shares []Share) []workv1alpha2.TargetCluster {
	targets := make([]workv1alpha2.TargetCluster, 0, len(shares))
	for _, share := range shares {
		if share.Replicas > 0 {
			targets = append(targets, workv1alpha2.TargetCluster{Name: share.Name, Replicas: int32(share.Replicas)})
		}
	}
	if !t.input.Features.EmptyWorkload {
		return targets
	}
	hasShare := make(map[string]bool, len(targets))
	for i := range targets {
		hasShare[targets[i].Name] = true
	}
	for i := range candidates {
		if !hasShare[candidates[i].name] {
			targets = append(targets, workv1alpha2.TargetCluster{Name: candidates[i].name})
		}
	}
	return targets
}

// replicaShares returns the share of each candidate. Either every candidate gets all replicas, or
// the replicas are divided over the candidates.
func (t *task) replicaShares(candidates []candidate) ([]Share, error) {
	if isDuplicated(t.spec.Placement) {
		return duplicatedShares(candidates, int64(t.spec.Replicas)), nil
	}
	divide, err := divideFuncFor(t.spec.Placement.ReplicaScheduling)
	if err != nil {
		return nil, err
	}
	if len(t.affinityMatchers) < 2 {
		return divide(t, candidates, int64(t.spec.Replicas))
	}
	return t.sharesByTier(candidates, divide)
}

func duplicatedShares(candidates []candidate, replicas int64) []Share {
	shares := make([]Share, len(candidates))
	for i := range candidates {
		shares[i] = Share{Name: candidates[i].name, Replicas: replicas}
	}
	slices.SortFunc(shares, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return shares
}

// sharesByTier assigns replicas to one tier after the other, up to the capacity of each tier. Each
// tier is divided separately, so replicas are removed from the last tiers first if the number of
// replicas decreases.
func (t *task) sharesByTier(selected []candidate, divide divideFunc) ([]Share, error) {
	var shares []Share
	remaining, all := int64(t.spec.Replicas), selected
	for len(selected) > 0 && remaining > 0 {
		end := 1
		for end < len(selected) && selected[end].tier == selected[0].tier {
			end++
		}
		part := min(remaining, totalAvailable(selected[:end]))
		divided, err := divide(t, selected[:end], part)
		if err != nil {
			return nil, err
		}
		shares = append(shares, divided...)
		selected = selected[end:]
		remaining -= part
	}
	if remaining > 0 {
		return nil, t.notEnoughInTiersError(int64(t.spec.Replicas), all)
	}
	return shares, nil
}

// divideByWeight divides the replicas by fixed weights. It ignores current replicas and capacity.
func divideByWeight(t *task, candidates []candidate, want int64) ([]Share, error) {
	return Divide(want, t.clusterWeights(candidates), t.tieBreakUID()), nil
}

func (t *task) tieBreakUID() string { return string(t.spec.Resource.UID) }

// clusterWeights returns the weight of each candidate, which is the largest weight of the entries
// that select the candidate. Candidates that no entry selects are omitted. If no candidate is left,
// or if there are no weights, all candidates get the same weight.
func (t *task) clusterWeights(candidates []candidate) []WeightedCluster {
	var parties []WeightedCluster
	preference := t.spec.Placement.ReplicaScheduling.WeightPreference
	if preference != nil {
		parties = t.matchedWeights(candidates, preference.StaticWeightList)
	}
	if len(parties) > 0 {
		return parties
	}
	for i := range candidates {
		parties = append(parties, WeightedCluster{Name: candidates[i].name, Weight: 1})
	}
	return parties
}

func (t *task) matchedWeights(candidates []candidate, weightEntries []policyv1alpha1.StaticClusterWeight) []WeightedCluster {
	// The first entry that selects a candidate has the largest weight for that candidate.
	descending := slices.SortedStableFunc(slices.Values(weightEntries), func(a, b policyv1alpha1.StaticClusterWeight) int {
		return cmp.Compare(b.Weight, a.Weight)
	})
	matchers := make([]clusteraffinity.Matcher, len(descending))
	for i := range descending {
		matchers[i] = clusteraffinity.Compile(&descending[i].TargetCluster)
	}
	var parties []WeightedCluster
	for i := range candidates {
		for j := range descending {
			if descending[j].Weight > 0 && matchers[j].Matches(candidates[i].cluster) {
				parties = append(parties, WeightedCluster{Name: candidates[i].name, Weight: descending[j].Weight})
				break
			}
		}
	}
	return parties
}
