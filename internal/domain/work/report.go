package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// Dispatching is the condition that changes of the Work are delivered. The time of
// a transition is left to the caller.
func Dispatching(of *workv1alpha1.Work) metav1.Condition {
	condition := metav1.Condition{
		Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue, ObservedGeneration: of.Generation,
		Reason: workv1alpha1.WorkDispatchingReason, Message: "Work is being dispatched to member clusters.",
	}
	if Suspended(of) {
		condition.Status = metav1.ConditionFalse
		condition.Reason = workv1alpha1.WorkSuspendDispatchingReason
		condition.Message = "Work dispatching is in a suspended state."
	}
	return condition
}

// Suspended tells whether changes of the Work are held back.
func Suspended(of *workv1alpha1.Work) bool {
	return of.Spec.SuspendDispatching != nil && *of.Spec.SuspendDispatching
}

// Applied is the condition that the member has all manifests, given the failures
// of those it has not, one each. The time of a transition is left to the caller.
func Applied(of *workv1alpha1.Work, failures []error) metav1.Condition {
	if len(failures) == 0 {
		return metav1.Condition{
			Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: of.Generation,
			Reason: workv1alpha1.WorkAppliedSuccessfulReason, Message: "Manifest has been successfully applied",
		}
	}
	total := len(of.Spec.Workload.Manifests)
	reason := workv1alpha1.WorkAppliedFailedReason
	if isForbidden(failures) {
		reason = workv1alpha1.WorkMemberForbidsReason
	}
	return metav1.Condition{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, ObservedGeneration: of.Generation,
		Reason: reason,
		Message: fmt.Sprintf("Failed to apply all manifests (%d/%d): %v",
			max(total-len(failures), 0), total, utilerrors.NewAggregate(failures)),
	}
}
