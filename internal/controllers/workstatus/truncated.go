package workstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// reportTruncated sets the condition that lists the truncated statuses of a Work. The condition is
// removed only after all objects were read and no status was truncated.
func reportTruncated(karmadaWork *workv1alpha1.Work, reflections []reflection, status *workv1alpha1.WorkStatus, now metav1.Time) {
	var truncated []string
	for _, result := range reflections {
		if result.truncation != "" {
			truncated = append(truncated, result.truncation)
		}
	}
	switch {
	case len(truncated) > 0:
		condition := work.StatusTruncatedCondition(karmadaWork, truncated)
		condition.LastTransitionTime = now
		conditions.Set(&status.Conditions, condition)
	case len(reflections) == len(karmadaWork.Spec.Workload.Manifests):
		conditions.Remove(&status.Conditions, workv1alpha1.WorkStatusTruncated)
	}
}
