package scheduler

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
)

// bindingsByClusterKey finds the bindings that a changed cluster may affect, by the keys that
// clusteraffinity.ClusterKeys returns for the cluster.
var bindingsByClusterKey = loop.Index{
	Name: "scheduler/cluster-key", Types: []client.Object{binding.New(true), binding.New(false)}, Keys: clusterKeysOf,
}

// bindingsByWorkloadGroup finds the ResourceBindings of a workload affinity group.
// ClusterResourceBindings do not belong to such groups.
var bindingsByWorkloadGroup = loop.Index{
	Name: "scheduler/workload-group", Types: []client.Object{binding.New(true)}, Keys: workloadGroupsOf,
}

// indexes returns the indexes that the scheduler needs for the enabled features.
func indexes(features placement.Features) []loop.Index {
	if features.WorkloadAffinity {
		return []loop.Index{bindingsByClusterKey, bindingsByWorkloadGroup}
	}
	return []loop.Index{bindingsByClusterKey}
}

func clusterKeysOf(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	return placement.BindingKeys(bound, bound.BindingSpec(), bound.BindingStatus())
}

func workloadGroupsOf(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	return placement.WorkloadGroupKeys(bound)
}
