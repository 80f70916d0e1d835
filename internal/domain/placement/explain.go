package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Exclusion is the reason why Schedule did not select a cluster.
type Exclusion struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Step is the step that excluded the cluster.
	Step Step
	// Plugin is the name of the filter that rejected the cluster, or PluginSpreadConstraint if the
	// spread constraints exclude it. It is empty for a terminating cluster, for a cluster that gets no
	// replicas, and for clusters that passed the filters if a later step failed.
	Plugin string
	// Reason is a text without the cluster's name.
	Reason string
	// NeedsCapacity is true if more capacity in the cluster can change the result.
	NeedsCapacity bool
}

// Explanation is the result of Schedule, with the reason for each cluster that is not in the result.
type Explanation struct {
	Result Result
	// Err is the error of Schedule, or nil.
	Err error
	// Exclusions has an entry for each cluster that is not in Result, sorted by name. With affinity
	// groups, the entries belong to the group that succeeded, or to the last group if none succeeded.
	Exclusions []Exclusion
}

// Explain runs Schedule, and also returns the first reason why each of the other clusters was excluded.
// It costs more than Schedule, because it stores a text for each cluster.
func Explain(input Input) Explanation {
	input.exclusions = map[string]Exclusion{}
	result, err := Schedule(input)
	for _, target := range result.Clusters {
		delete(input.exclusions, target.Name)
	}
	sorted := slices.SortedFunc(maps.Values(input.exclusions), func(a, b Exclusion) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return Explanation{Result: result, Err: err, Exclusions: sorted}
}

// exclude records the exclusion if Explain requested it. A cluster keeps its first exclusion.
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

// excludeUnselected records the candidates that the select step did not select. err is the step's
// error.
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
				Reason: fmt.Sprintf("fits, but the spread constraints select %d of %d clusters, and others are preferred",
					len(selected), len(candidates)),
			})
		}
	}
}

// excludeUnassigned records the selected candidates that get no replicas. err is the assign step's
// error.
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
			exclusion.Reason = fmt.Sprintf("fits and has room for %d, but the replicas stay in their clusters until they are divided again",
				candidate.available)
		case t.dependsOnCapacity():
			exclusion.Reason += fmt.Sprintf(": room for %d", candidate.available)
			exclusion.NeedsCapacity = true
		}
		t.exclude(exclusion)
	}
}

// keepsShares reports whether each target keeps its previous replicas, so that the result does not
// depend on capacity.
func (t *task) keepsShares(targets []workv1alpha2.TargetCluster) bool {
	for i := range targets {
		if t.assignedReplicas[targets[i].Name] != int64(targets[i].Replicas) {
			return false
		}
	}
	return len(targets) > 0
}

// excludeAll records candidates that passed the filters before the given step failed.
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
