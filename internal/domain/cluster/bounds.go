package cluster

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// maxListedBounds is the maximum number of exceeded limits that the condition describes. The condition
// only counts the other exceeded limits.
const maxListedBounds = 5

// WithinBoundsCondition returns the condition that reports whether the member's data is within the size
// limits. exceeded describes, in order, the limits that the data recently exceeded.
// WithinBoundsCondition returns nil for a cluster that never exceeded a limit.
func WithinBoundsCondition(stored *metav1.Condition, exceeded []string, generation int64, now metav1.Time) *metav1.Condition {
	condition := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionWithinBounds, Status: metav1.ConditionTrue,
		Reason:             clusterv1alpha1.BoundsKeptReason,
		Message:            "the cluster is within all bounds again",
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	if len(exceeded) == 0 {
		if stored == nil {
			return nil
		}
		return &condition
	}
	condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1alpha1.BoundExceededReason
	listed := exceeded[:min(len(exceeded), maxListedBounds)]
	condition.Message = "what the cluster sent was not used: " + strings.Join(listed, "; ")
	if more := len(exceeded) - len(listed); more > 0 {
		condition.Message += fmt.Sprintf("; and %d more", more)
	}
	condition.Message = conditions.LimitMessage(condition.Message)
	return &condition
}
