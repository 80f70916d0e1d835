package workstatus

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// reportInterpretation sets the condition that reports the errors of the interpreter. The condition
// is removed only after all objects were read and interpreted.
func reportInterpretation(karmadaWork *workv1alpha1.Work, reflections []reflection, status *workv1alpha1.WorkStatus, now metav1.Time) {
	var failures []error
	for _, result := range reflections {
		failures = append(failures, result.statusErr, result.healthErr)
	}
	err := errors.Join(failures...)
	switch {
	case err != nil:
		conditions.Set(&status.Conditions, metav1.Condition{
			Type: workv1alpha1.WorkStatusInterpreted, Status: metav1.ConditionFalse, ObservedGeneration: karmadaWork.Generation,
			Reason: workv1alpha1.WorkInterpreterFailedReason, Message: err.Error(), LastTransitionTime: now,
		})
	case len(reflections) == len(karmadaWork.Spec.Workload.Manifests):
		conditions.Remove(&status.Conditions, workv1alpha1.WorkStatusInterpreted)
	}
}
