package placement

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// AppliedPlacement returns the placement as compact JSON. The scheduler writes it to
// policyv1alpha1.AppliedPlacementAnnotation together with the clusters that it selected for this
// placement.
func AppliedPlacement(placement *policyv1alpha1.Placement) (string, error) {
	text, err := json.Marshal(placement)
	if err != nil {
		return "", fmt.Errorf("encoding the applied placement: %w", err)
	}
	return string(text), nil
}

// PlacementChanged reports whether the placement differs from the applied placement, which is the value
// of policyv1alpha1.AppliedPlacementAnnotation, in a field that affects the current targets.
//
// An empty applied placement counts as a change. One that is not valid JSON does not, because it must
// not cause workloads to move. With affinity groups, only activeGroup, the group in use, is compared,
// so that other groups can be added, removed and reordered without moving a workload.
func PlacementChanged(placement *policyv1alpha1.Placement, applied, activeGroup string) bool {
	if applied == "" {
		return true
	}
	if placement == nil {
		return false
	}
	appliedPlacement := &policyv1alpha1.Placement{}
	if err := json.Unmarshal([]byte(applied), appliedPlacement); err != nil {
		return false
	}
	equal := equality.Semantic.DeepEqual
	switch {
	case equal(appliedPlacement, placement):
		return false
	case !equal(appliedPlacement.ClusterAffinity, placement.ClusterAffinity),
		!equal(appliedPlacement.ClusterTolerations, placement.ClusterTolerations),
		!equal(appliedPlacement.SpreadConstraints, placement.SpreadConstraints),
		!equal(appliedPlacement.ReplicaScheduling, placement.ReplicaScheduling):
		return true
	}
	return affinityGroupChanged(appliedPlacement.ClusterAffinities, placement.ClusterAffinities, activeGroup)
}

func affinityGroupChanged(before, after []policyv1alpha1.ClusterAffinityTerm, activeGroup string) bool {
	if activeGroup == "" {
		return true
	}
	named := func(term policyv1alpha1.ClusterAffinityTerm) bool { return term.AffinityName == activeGroup }
	i, j := slices.IndexFunc(before, named), slices.IndexFunc(after, named)
	return i < 0 || j < 0 || !equality.Semantic.DeepEqual(before[i], after[j])
}

// ReplicasChanged reports whether the targets' replicas differ from those that the template requests,
// because the template was scaled or a target with replicas was removed.
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

// componentsChanged reports whether the components are not placed yet, or have been scaled since. A
// target without components does not count as changed, because its workload was not placed by
// components.
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

// targetComponents returns the components as they are stored in a target. A single component is not
// stored, because the workload then has only one Pod template.
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
