package scheduler

import (
	"context"

	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/placement"
)

// EstimateRequest describes the workload for which capacity is estimated.
type EstimateRequest struct {
	// Spec is the spec of the binding. It must not be modified.
	Spec *workv1alpha2.ResourceBindingSpec
	// Sets requests the number of whole sets of spec.components instead of single replicas.
	Sets bool
}

// Estimator estimates the capacity of clusters.
type Estimator interface {
	// Estimate returns how many more replicas, or sets, fit into each cluster. A cluster that is
	// missing or negative is unknown. If an error is returned, the result is ignored.
	Estimate(ctx context.Context, request EstimateRequest, clusters []*clusterv1alpha1.Cluster) (map[string]int32, error)
}

// estimate returns a function that calls all estimators and returns the minimum for each
// cluster.
func (s *scheduler) estimate(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec) func([]*clusterv1alpha1.Cluster) map[string]int32 {
	request := EstimateRequest{Spec: spec, Sets: placement.PlacesComponents(spec, s.options.Features)}
	return func(clusters []*clusterv1alpha1.Cluster) map[string]int32 {
		minimum := map[string]int32{}
		for _, estimator := range s.estimators {
			estimates, err := estimator.Estimate(ctx, request, clusters)
			if err != nil {
				klog.FromContext(ctx).V(1).Info("Ignoring an estimator that returned an error", "cause", err)
				continue
			}
			mergeMinimum(minimum, estimates)
		}
		return minimum
	}
}

// mergeMinimum lowers the minimum of each cluster to the estimate, and ignores unknown
// estimates.
func mergeMinimum(minimum, estimates map[string]int32) {
	for name, replicas := range estimates {
		if known, ok := minimum[name]; replicas >= 0 && (!ok || replicas < known) {
			minimum[name] = replicas
		}
	}
}
