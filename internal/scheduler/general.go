package scheduler

import (
	"context"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/capacity"
)

// General estimates from what clusters report of themselves. It always answers.
type General struct {
	// Models is the gate CustomizedClusterResourceModeling: grades of nodes count
	// where clusters report them.
	Models bool
}

// Estimate implements Estimator.
func (g General) Estimate(_ context.Context, demand Demand, clusters []*clusterv1alpha1.Cluster) (map[string]int32, error) {
	rooms := make(map[string]int32, len(clusters))
	for _, cluster := range clusters {
		if demand.Sets {
			rooms[cluster.Name] = capacity.AvailableSets(cluster, demand.Spec.Components, g.Models)
			continue
		}
		rooms[cluster.Name] = capacity.AvailableReplicas(cluster, demand.Spec.ReplicaRequirements, g.Models)
	}
	return rooms, nil
}
