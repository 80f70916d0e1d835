package cluster

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// maxListedBounds is the number of exceeded limits that a condition names. Of the other exceeded
// limits, the condition states only the number.
const maxListedBounds = 5

// WithinBoundsCondition returns the condition that reports whether the data of a member is within
// the size limits. exceeded holds the limits that the data exceeded lately, in order. It returns
// nil for a cluster that never exceeded a limit.
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
