package scheduler

import (
	"context"

	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/placement"
)

// Demand is what room is wanted for.
type Demand struct {
	// Spec is that of the binding; it must not be changed.
	Spec *workv1alpha2.ResourceBindingSpec
	// Sets asks for whole sets of spec.components instead of single replicas.
	Sets bool
}

// Estimator tells how much room clusters have.
type Estimator interface {
	// Estimate tells how many more replicas, or sets, each cluster can take. A
	// cluster that is missing or negative is unknown. After an error nothing of
	// the answer counts.
	Estimate(ctx context.Context, demand Demand, clusters []*clusterv1alpha1.Cluster) (map[string]int32, error)
}

// estimate asks all estimators; the least that one of them knows counts.
func (s *scheduler) estimate(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec) func([]*clusterv1alpha1.Cluster) map[string]int32 {
	demand := Demand{Spec: spec, Sets: placement.PlacesComponents(spec, s.options.Features)}
	return func(clusters []*clusterv1alpha1.Cluster) map[string]int32 {
		least := map[string]int32{}
		for _, estimator := range s.estimators {
			answer, err := estimator.Estimate(ctx, demand, clusters)
			if err != nil {
				klog.FromContext(ctx).V(1).Info("An estimator does not answer and is left out", "cause", err)
				continue
			}
			keepLeast(least, answer)
		}
		return least
	}
}

// keepLeast lowers what is known of each cluster to what the answer says of it.
func keepLeast(least, answer map[string]int32) {
	for name, room := range answer {
		if known, ok := least[name]; room >= 0 && (!ok || room < known) {
			least[name] = room
		}
	}
}
