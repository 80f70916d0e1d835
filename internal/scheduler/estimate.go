package scheduler

import (
	"context"

	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/placement"
)

// estimate returns a function that asks all estimators and returns the lowest estimate for each
// cluster.
func (s *scheduler) estimate(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec) func([]*clusterv1alpha1.Cluster) map[string]int32 {
	demand := placement.DemandOf(spec, s.options.Features)
	return func(clusters []*clusterv1alpha1.Cluster) map[string]int32 {
		limits := estimators.Ask(ctx, s.estimators, demand, clusters)
		logLimits(ctx, clusters, limits)
		return capacity.Counts(clusters, limits)
	}
}

// logLimits logs one line if estimators have no estimate for some clusters. With a high verbosity
// it also logs for each cluster which estimator limits the replicas of that cluster.
func logLimits(ctx context.Context, clusters []*clusterv1alpha1.Cluster, limits []capacity.Limit) {
	logger, failed, example := klog.FromContext(ctx), 0, -1
	isDetailed := logger.V(4).Enabled()
	for i := range limits {
		if len(limits[i].Failures) > 0 {
			failed++
			example = max(example, i)
		}
		if isDetailed {
			logger.V(4).Info("Estimated the capacity of a cluster", "member", clusters[i].Name, "limit", limits[i].String())
		}
	}
	if failed > 0 {
		logger.V(1).Info("Ignoring estimators that returned an error", "members", failed, "member", clusters[example].Name, "limit", limits[example].String())
	}
}
