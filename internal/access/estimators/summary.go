package estimators

import (
	"context"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/capacity"
)

// Summary estimates capacity from the resource summaries in the status of clusters. It has an
// estimate for every cluster and needs no timeout.
type Summary struct {
	// Models is the value of the feature gate CustomizedClusterResourceModeling. If it is true,
	// Summary uses the grades of nodes that clusters report.
	Models bool
}

// Estimate implements Estimator.
func (s Summary) Estimate(_ context.Context, demand capacity.Demand, clusters []*clusterv1alpha1.Cluster, report Report) {
	available := demand.Counter(s.Models)
	for i, cluster := range clusters {
		report(i, capacity.Estimate{Count: available(cluster)})
	}
}
