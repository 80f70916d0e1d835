package placement

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// AppliedPlacement is the compact JSON of a placement, as it is stored in
// policyv1alpha1.AppliedPlacementAnnotation together with the clusters that were
// chosen for it.
func AppliedPlacement(placement *policyv1alpha1.Placement) (string, error) {
	text, err := json.Marshal(placement)
	if err != nil {
		return "", fmt.Errorf("encoding the applied placement: %w", err)
	}
	return string(text), nil
}

// PlacementChanged reports whether the placement differs, in what concerns the
// present choice of clusters, from the applied one: the content of
// policyv1alpha1.AppliedPlacementAnnotation.
//
// Nothing applied yet is a change. An annotation that is no JSON is none: it
// proves nothing, and workloads must not move because of it. With affinity groups
// only the group in use (observing, from the status) counts, so that others can
// be added, removed and reordered without moving anything.
func PlacementChanged(placement *policyv1alpha1.Placement, applied, observing string) bool {
	if applied == "" {
		return true
	}
	if placement == nil {
		return false
	}
	before := &policyv1alpha1.Placement{}
	if err := json.Unmarshal([]byte(applied), before); err != nil {
		return false
	}
	same := equality.Semantic.DeepEqual
	switch {
	case same(before, placement):
		return false
	case !same(before.ClusterAffinity, placement.ClusterAffinity),
		!same(before.ClusterTolerations, placement.ClusterTolerations),
		!same(before.SpreadConstraints, placement.SpreadConstraints),
		!same(before.ReplicaScheduling, placement.ReplicaScheduling):
		return true
	}
	return groupChanged(before.ClusterAffinities, placement.ClusterAffinities, observing)
}

func groupChanged(before, after []policyv1alpha1.ClusterAffinityTerm, observing string) bool {
	if observing == "" {
		return true
	}
	named := func(term policyv1alpha1.ClusterAffinityTerm) bool { return term.AffinityName == observing }
	i, j := slices.IndexFunc(before, named), slices.IndexFunc(after, named)
	return i < 0 || j < 0 || !equality.Semantic.DeepEqual(before[i], after[j])
}

// ReplicasChanged reports whether the recorded clusters hold another number of
// replicas than the template asks for, because it was scaled or because a cluster
// lost its share.
func ReplicasChanged(spec *workv1alpha2.ResourceBindingSpec, features Features) bool {
	if spec.Placement == nil || spec.Placement.ReplicaScheduling == nil {
		return false
	}
	if features.MultiplePodTemplates && componentsChanged(spec) {
		return true
	}
	switch spec.Placement.ReplicaScheduling.ReplicaSchedulingType {
	case policyv1alpha1.ReplicaSchedulingTypeDuplicated:
		return slices.ContainsFunc(spec.Clusters, func(target workv1alpha2.TargetCluster) bool {
			return target.Replicas != spec.Replicas
		})
	case policyv1alpha1.ReplicaSchedulingTypeDivided:
		sum := int64(0)
		for i := range spec.Clusters {
			sum += int64(spec.Clusters[i].Replicas)
		}
		return sum != int64(spec.Replicas)
	default:
		return false
	}
}

// componentsChanged reports whether components are not placed yet or were scaled
// since. Targets without recorded components were not placed as components.
func componentsChanged(spec *workv1alpha2.ResourceBindingSpec) bool {
	if len(spec.Components) == 0 {
		return false
	}
	if len(spec.Clusters) == 0 {
		return true
	}
	want := targetComponents(spec)
	return slices.ContainsFunc(spec.Clusters, func(target workv1alpha2.TargetCluster) bool {
		return len(target.Components) > 0 && !slices.Equal(target.Components, want)
	})
}

// targetComponents are the components as a target records them. A single one is
// not recorded: its workload has but one pod template.
func targetComponents(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetComponent {
	if len(spec.Components) < 2 {
		return nil
	}
	components := make([]workv1alpha2.TargetComponent, len(spec.Components))
	for i := range spec.Components {
		components[i] = workv1alpha2.TargetComponent{Name: spec.Components[i].Name, Replicas: spec.Components[i].Replicas}
	}
	return components
}
