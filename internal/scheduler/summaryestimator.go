package scheduler

import (
	"context"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/capacity"
)

// SummaryEstimator estimates from the resource summaries in the status of clusters. It never returns an
// error.
type SummaryEstimator struct {
	// Models is the feature gate CustomizedClusterResourceModeling: grades of nodes are used if
	// clusters report them.
	Models bool
}

// Estimate implements Estimator.
func (g SummaryEstimator) Estimate(_ context.Context, request EstimateRequest, clusters []*clusterv1alpha1.Cluster) (map[string]int32, error) {
	estimates := make(map[string]int32, len(clusters))
	for _, cluster := range clusters {
		if request.Sets {
			estimates[cluster.Name] = capacity.AvailableSets(cluster, request.Spec.Components, g.Models)
			continue
		}
		estimates[cluster.Name] = capacity.AvailableReplicas(cluster, request.Spec.ReplicaRequirements, g.Models)
	}
	return estimates, nil
}
