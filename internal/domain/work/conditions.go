package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// DispatchingCondition returns the condition that reports whether the Work's changes are delivered to
// the cluster. The caller sets the transition time.
func DispatchingCondition(work *workv1alpha1.Work) metav1.Condition {
	condition := metav1.Condition{
		Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: workv1alpha1.WorkDispatchingReason, Message: "Work is being dispatched to member clusters.",
	}
	if IsSuspended(work) {
		condition.Status = metav1.ConditionFalse
		condition.Reason = workv1alpha1.WorkSuspendDispatchingReason
		condition.Message = "Work dispatching is in a suspended state."
	}
	return condition
}

// IsSuspended reports whether the delivery of the Work's changes is suspended.
func IsSuspended(work *workv1alpha1.Work) bool {
	return work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
}

// AppliedCondition returns the condition that reports whether all manifests are applied to the member.
// failures contains one error for each manifest that is not applied. The caller sets the transition
// time.
func AppliedCondition(work *workv1alpha1.Work, failures []error) metav1.Condition {
	if len(failures) == 0 {
		return metav1.Condition{
			Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
			Reason: workv1alpha1.WorkAppliedSuccessfulReason, Message: "Manifest has been successfully applied",
		}
	}
	total := len(work.Spec.Workload.Manifests)
	reason := workv1alpha1.WorkAppliedFailedReason
	if isForbidden(failures) {
		reason = workv1alpha1.WorkMemberForbidsReason
	}
	return metav1.Condition{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, ObservedGeneration: work.Generation,
		Reason: reason,
		Message: fmt.Sprintf("Failed to apply all manifests (%d/%d): %v",
			max(total-len(failures), 0), total, utilerrors.NewAggregate(failures)),
	}
}
