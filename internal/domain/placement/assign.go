package placement

import (
	"cmp"
	"fmt"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// division divides a number of replicas over candidates.
type division func(t *task, candidates []candidate, want int64) ([]Share, error)

// divisionOf finds the division that a strategy asks for. A strategy that divides
// and does not say how divides by weight.
func divisionOf(strategy *policyv1alpha1.ReplicaSchedulingStrategy) (division, error) {
	if strategy.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided {
		switch strategy.ReplicaDivisionPreference {
		case policyv1alpha1.ReplicaDivisionPreferenceAggregated:
			return divideAggregated, nil
		case policyv1alpha1.ReplicaDivisionPreferenceWeighted, "":
			if byCapacity(strategy) {
				return divideByRoom, nil
			}
			return divideByWeight, nil
		}
	}
	return nil, fmt.Errorf("unsupported replica scheduling strategy, type %q and preference %q",
		strategy.ReplicaSchedulingType, strategy.ReplicaDivisionPreference)
}

// byCapacity reports whether the strategy divides by what clusters have room for.
func byCapacity(strategy *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	if strategy == nil || strategy.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided {
		return false
	}
	return strategy.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated ||
		strategy.WeightPreference != nil && strategy.WeightPreference.DynamicWeight != ""
}

// assign makes targets of the selected candidates.
func (t *task) assign(selected []candidate) ([]workv1alpha2.TargetCluster, error) {
	if !t.hasReplicas() {
		return t.targetWhole(selected), nil
	}
	shares, err := t.share(selected)
	if err != nil {
		return nil, err
	}
	return t.targetShares(selected, shares), nil
}

// hasReplicas reports whether there is a number of replicas to speak of: of one
// pod template, that is.
func (t *task) hasReplicas() bool { return HasReplicas(t.spec) }

// HasReplicas reports whether the targets of a binding carry a number of replicas.
// Kinds without replicas, and those with several components, have none.
func HasReplicas(spec *workv1alpha2.ResourceBindingSpec) bool {
	return (spec.Replicas > 0 || spec.ReplicaRequirements != nil) && len(spec.Components) <= 1
}

// targetWhole makes every candidate a target without a number of replicas, by
// name, so that another order of preference is no difference.
func (t *task) targetWhole(selected []candidate) []workv1alpha2.TargetCluster {
	var components []workv1alpha2.TargetComponent
	if PlacesComponents(t.spec, t.input.Features) {
		components = targetComponents(t.spec)
	}
	targets := make([]workv1alpha2.TargetCluster, len(selected))
	for i := range selected {
		targets[i] = workv1alpha2.TargetCluster{Name: selected[i].name, Components: slices.Clone(components)}
	}
	slices.SortFunc(targets, func(a, b workv1alpha2.TargetCluster) int { return cmp.Compare(a.Name, b.Name) })
	return targets
}

// targetShares makes the shares targets. Candidates without replicas are left out,
// or come last, most preferred first, if empty workloads are wanted.
func (t *task) targetShares(selected []candidate, shares []Share) []workv1alpha2.TargetCluster {
	targets := make([]workv1alpha2.TargetCluster, 0, len(selected))
	used := make(map[string]bool, len(shares))
	for _, share := range shares {
		if share.Replicas > 0 {
			targets = append(targets, workv1alpha2.TargetCluster{Name: share.Name, Replicas: int32(share.Replicas)})
			used[share.Name] = true
		}
	}
	if !t.input.Features.EmptyWorkload {
		return targets
	}
	for i := range selected {
		if !used[selected[i].name] {
			targets = append(targets, workv1alpha2.TargetCluster{Name: selected[i].name})
		}
	}
	return targets
}

// share gives every candidate all replicas, or divides them.
func (t *task) share(selected []candidate) ([]Share, error) {
	if duplicated(t.spec.Placement) {
		return copies(selected, int64(t.spec.Replicas)), nil
	}
	divide, err := divisionOf(t.spec.Placement.ReplicaScheduling)
	if err != nil {
		return nil, err
	}
	if len(t.affinities) < 2 {
		return divide(t, selected, int64(t.spec.Replicas))
	}
	return t.shareByTier(selected, divide)
}

func copies(selected []candidate, replicas int64) []Share {
	shares := make([]Share, len(selected))
	for i := range selected {
		shares[i] = Share{Name: selected[i].name, Replicas: replicas}
	}
	slices.SortFunc(shares, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return shares
}

// shareByTier fills one tier after the other, each as far as it has room. Since
// every tier is divided on its own, a workload that shrinks leaves the last tiers
// first.
func (t *task) shareByTier(selected []candidate, divide division) ([]Share, error) {
	var shares []Share
	remaining, all := int64(t.spec.Replicas), selected
	for len(selected) > 0 && remaining > 0 {
		end := 1
		for end < len(selected) && selected[end].tier == selected[0].tier {
			end++
		}
		part := min(remaining, roomOf(selected[:end]))
		divided, err := divide(t, selected[:end], part)
		if err != nil {
			return nil, err
		}
		shares = append(shares, divided...)
		selected = selected[end:]
		remaining -= part
	}
	if remaining > 0 {
		return nil, t.notEnoughInAnyTier(int64(t.spec.Replicas), all)
	}
	return shares, nil
}

// divideByWeight divides by fixed weights. What clusters have or can take plays no
// part.
func divideByWeight(t *task, candidates []candidate, want int64) ([]Share, error) {
	return Divide(want, t.weights(candidates), t.tieUID()), nil
}

func (t *task) tieUID() string { return string(t.spec.Resource.UID) }

// weights gives each candidate the largest weight of the entries that select it.
// Those that none selects are left out; if that is all of them, or there are no
// weights, all weigh the same.
func (t *task) weights(candidates []candidate) []Party {
	var parties []Party
	preference := t.spec.Placement.ReplicaScheduling.WeightPreference
	if preference != nil {
		parties = t.weighed(candidates, preference.StaticWeightList)
	}
	if len(parties) > 0 {
		return parties
	}
	for i := range candidates {
		parties = append(parties, Party{Name: candidates[i].name, Weight: 1})
	}
	return parties
}

func (t *task) weighed(candidates []candidate, entries []policyv1alpha1.StaticClusterWeight) []Party {
	matchers := make([]Matcher, len(entries))
	for i := range entries {
		matchers[i] = Compile(&entries[i].TargetCluster)
	}
	var parties []Party
	for i := range candidates {
		weight := int64(0)
		for j := range entries {
			if entries[j].Weight > weight && matchers[j].Matches(candidates[i].cluster) {
				weight = entries[j].Weight
			}
		}
		if weight > 0 {
			parties = append(parties, Party{Name: candidates[i].name, Weight: weight})
		}
	}
	return parties
}
