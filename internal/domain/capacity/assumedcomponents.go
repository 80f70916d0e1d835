package capacity

import (
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// componentsIn returns the components of a workload in one of its targets, with the replicas in that
// target. A workload with a single Pod template has one component.
func componentsIn(spec *workv1alpha2.ResourceBindingSpec, target *workv1alpha2.TargetCluster) []workv1alpha2.Component {
	if target.Replicas > 0 || len(spec.Components) == 0 {
		return []workv1alpha2.Component{singleComponent(spec, target.Replicas)}
	}
	if len(target.Components) == 0 {
		return spec.Components
	}
	replicas := make(map[string]int32, len(target.Components))
	for _, component := range target.Components {
		replicas[component.Name] = component.Replicas
	}
	components := make([]workv1alpha2.Component, len(spec.Components))
	for i := range spec.Components {
		components[i] = spec.Components[i]
		components[i].Replicas = replicas[components[i].Name]
	}
	return components
}

// singleComponent returns the component of a workload with a single Pod template.
func singleComponent(spec *workv1alpha2.ResourceBindingSpec, replicas int32) workv1alpha2.Component {
	component := workv1alpha2.Component{Name: spec.Resource.Name, Replicas: replicas}
	if requirements := spec.ReplicaRequirements; requirements != nil {
		component.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
			NodeClaim: requirements.NodeClaim, ResourceRequest: requirements.ResourceRequest, PriorityClassName: requirements.PriorityClassName,
		}
	}
	return component
}

func replicasByComponent(components []workv1alpha2.Component) map[string]int32 {
	replicas := make(map[string]int32, len(components))
	for i := range components {
		replicas[components[i].Name] = components[i].Replicas
	}
	return replicas
}

// increases returns the components with more replicas than before, with the number of additional
// replicas.
func increases(components []workv1alpha2.Component, before map[string]int32) []workv1alpha2.Component {
	var increased []workv1alpha2.Component
	for i := range components {
		component := components[i]
		if component.Replicas -= max(0, before[component.Name]); component.Replicas > 0 {
			increased = append(increased, component)
		}
	}
	return increased
}
