package cluster

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// maxBoundsNamed is how many exceeded bounds a condition names; the rest is counted.
const maxBoundsNamed = 5

// BoundsCondition is the condition that what a cluster sends is within the bounds,
// given those that it exceeded lately, in order. It is nil for a cluster that never
// exceeded one.
func BoundsCondition(stored *metav1.Condition, exceeded []string, generation int64, now metav1.Time) *metav1.Condition {
	condition := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionWithinBounds, Status: metav1.ConditionTrue,
		Reason:             clusterv1alpha1.BoundsKeptReason,
		Message:            "the cluster exceeds no bound any more",
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	if len(exceeded) == 0 {
		if stored == nil {
			return nil
		}
		return &condition
	}
	condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1alpha1.BoundExceededReason
	named := exceeded[:min(len(exceeded), maxBoundsNamed)]
	condition.Message = "what the cluster sent was not used: " + strings.Join(named, "; ")
	if more := len(exceeded) - len(named); more > 0 {
		condition.Message += fmt.Sprintf("; and %d more", more)
	}
	condition.Message = conditions.Clip(condition.Message)
	return &condition
}
