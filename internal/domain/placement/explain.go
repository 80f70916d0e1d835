package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Exclusion is the reason why a scheduling does not use a cluster.
type Exclusion struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Step is the step that excluded the cluster.
	Step Step
	// Plugin is the name of the filter that rejected the cluster, or PluginSpreadConstraint if the
	// spread constraints leave it out. It is empty for a terminating cluster, for a cluster that
	// gets no replicas, and for all clusters that pass the filters if the scheduling fails later.
	Plugin string
	// Reason is the reason as text without the name of the cluster.
	Reason string
	// NeedsCapacity reports whether more capacity in the cluster can change the result.
	NeedsCapacity bool
}

// Explanation is the result of a scheduling with the reason for each cluster that is not in the
// result.
type Explanation struct {
	Result Result
	// Err is the error of Schedule, or nil.
	Err error
	// Exclusions has an entry for each known cluster that is not in Result, sorted by name. With
	// affinity groups, the entries belong to the group that succeeded, or to the last group if
	// none succeeded. A terminating cluster counts as known.
	Exclusions []Exclusion
}

// Explain runs Schedule with the same input, and also returns why each of the other clusters is left
// out. Each cluster has the first reason for which it was excluded. Explain costs more than
// Schedule, because it stores a text for each cluster.
func Explain(input Input) Explanation {
	input.exclusions = map[string]Exclusion{}
	result, err := Schedule(input)
	for _, target := range result.Clusters {
		delete(input.exclusions, target.Name)
	}
	sorted := slices.SortedFunc(maps.Values(input.exclusions), func(a, b Exclusion) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return Explanation{Result: result, Err: err, Exclusions: sorted}
}

// exclude records why a cluster is excluded, if Explain requested that. The first reason stays.
func (t *task) exclude(exclusion Exclusion) {
	if t.input.exclusions == nil {
		return
	}
	if _, isExcluded := t.input.exclusions[exclusion.Cluster]; !isExcluded {
		t.input.exclusions[exclusion.Cluster] = exclusion
	}
}

func (t *task) excludeByFilter(cluster, plugin string, why reason) {
	t.exclude(Exclusion{Cluster: cluster, Step: StepFilter, Plugin: plugin, Reason: why.singular})
}

// excludeUnselected records the candidates that the spread constraints leave out. err is the error
// of the step.
func (t *task) excludeUnselected(candidates, selected []candidate, err error) {
	if t.input.exclusions == nil {
		return
	}
	if err != nil {
		t.excludeAll(StepSelect, candidates)
		return
	}
	chosen := sets.New(candidateNames(selected)...)
	for i := range candidates {
		if name := candidates[i].name; !chosen.Has(name) {
			t.exclude(Exclusion{
				Cluster: name, Step: StepSelect, Plugin: PluginSpreadConstraint,
				Reason: fmt.Sprintf("fits, but the spread constraints select %d of %d clusters, and others are preferred", len(selected), len(candidates)),
			})
		}
	}
}

// excludeUnassigned records the selected candidates that get no replicas. err is the error of the
// step.
func (t *task) excludeUnassigned(selected []candidate, targets []workv1alpha2.TargetCluster, err error) {
	if t.input.exclusions == nil {
		return
	}
	if err != nil {
		t.excludeAll(StepAssignReplicas, selected)
		return
	}
	chosen := sets.New[string]()
	for i := range targets {
		chosen.Insert(targets[i].Name)
	}
	keepsShares := t.dependsOnCapacity() && t.keepsShares(targets)
	for i := range selected {
		candidate := &selected[i]
		if chosen.Has(candidate.name) {
			continue
		}
		exclusion := Exclusion{Cluster: candidate.name, Step: StepAssignReplicas, Reason: "fits, but its share is 0 replicas"}
		switch {
		case keepsShares && candidate.available > 0:
			exclusion.Reason = fmt.Sprintf("fits and has room for %d, but the replicas stay in their clusters until they are divided again", candidate.available)
		case t.dependsOnCapacity():
			exclusion.Reason += fmt.Sprintf(": room for %d", candidate.available)
			exclusion.NeedsCapacity = true
		}
		t.exclude(exclusion)
	}
}

// keepsShares reports whether each target has the replicas that it had before. Then the result does
// not depend on the capacity.
func (t *task) keepsShares(targets []workv1alpha2.TargetCluster) bool {
	for i := range targets {
		if t.assignedReplicas[targets[i].Name] != int64(targets[i].Replicas) {
			return false
		}
	}
	return len(targets) > 0
}

// excludeAll records candidates that pass the filters although the scheduling fails in a later
// step.
func (t *task) excludeAll(step Step, candidates []candidate) {
	for i := range candidates {
		exclusion := Exclusion{Cluster: candidates[i].name, Step: step, Reason: "passes the filters, but the clusters that fit do not suffice"}
		if t.hasReplicas() && !isDuplicated(t.spec.Placement) {
			exclusion.Reason += fmt.Sprintf(": %s wanted, room for %d", countWithNoun(t.requiredCapacity(), nounReplica), candidates[i].available)
			exclusion.NeedsCapacity = true
		}
		t.exclude(exclusion)
	}
}
