package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/guard"
)

// DeletionHeldCondition returns the condition that reports that the Work's deletion is held: its
// objects stay in the cluster until a user confirms the deletion or an explanation is found. The caller
// sets the transition time.
func DeletionHeldCondition(work *workv1alpha1.Work, cluster string, reason guard.Reason) metav1.Condition {
	condition := metav1.Condition{
		Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
	}
	stay := fmt.Sprintf("The objects stay in cluster %s. If the objects may be deleted: ", cluster)
	confirm := stay + confirmCommand(work)
	switch reason {
	case guard.ReasonSuspended:
		condition.Reason = workv1alpha1.WorkSuspendedReason
		condition.Message = fmt.Sprintf("The binding no longer requires the objects in cluster %s, and the dispatching to this cluster is suspended. The objects stay in the cluster until the dispatching is resumed.", cluster)
	case guard.ReasonClusterChanged:
		condition.Reason = workv1alpha1.WorkClusterChangedReason
		condition.Message = fmt.Sprintf("Cluster %s does not match the placements of many workloads since its labels, provider, region or zones changed; to undo that, change them back. %s", cluster, stay+confirmAllCommand(cluster, condition.Reason))
	case guard.ReasonBudgetExceeded:
		condition.Reason = workv1alpha1.WorkDeletionBudgetExceededReason
		condition.Message = fmt.Sprintf("More templates lose their last copy within %s than the deletion budget allows. %s. To keep the objects, reject the deletions instead",
			guard.Window, stay+confirmAllCommand(cluster, condition.Reason))
	case guard.ReasonNamespaceInUse:
		condition.Reason = workv1alpha1.WorkNamespaceInUseReason
		condition.Message = fmt.Sprintf("The Namespace contains objects whose deletion is held or not decided yet; they would be deleted with it. Decide about them first: karmadactl held list --cluster %s. %s", cluster, confirm)
	case guard.ReasonTemplateInUse:
		condition.Reason = workv1alpha1.WorkBindingMissingReason
		condition.Message = "The binding of the Work was deleted, but its template exists and a policy claims it, or a workload needs it; a new binding takes the objects over. " + confirm
	case guard.ReasonTemplateUnreadable:
		condition.Reason = workv1alpha1.WorkTemplateUnknownReason
		condition.Message = "The binding of the Work is gone, and whether its template was deleted cannot be read in the control plane. " +
			confirm
	case guard.ReasonTemplateNotServed:
		condition.Reason = workv1alpha1.WorkTemplateKindNotServedReason
		condition.Message = "The binding of the Work is gone, and the control plane does not serve the kind of its template; install its CustomResourceDefinition again to keep the objects. " + confirm
	default:
		condition.Reason = workv1alpha1.WorkNotReplacedReason
		condition.Message = "The clusters of the binding were removed, no change of the template or its policy explains that, and no healthy copies in other clusters replace the objects. " + confirm
	}
	return condition
}

// RestoreNotConfirmedCondition returns the condition that reports that the Work's deletion is held: its
// objects stay in the cluster until a user confirms that the control plane was restored. The caller
// sets the transition time.
func RestoreNotConfirmedCondition(work *workv1alpha1.Work, message string) metav1.Condition {
	return metav1.Condition{
		Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: workv1alpha1.WorkRestoreNotConfirmedReason, Message: message,
	}
}

// KindNotServedCondition returns the condition that reports that a deleted Work's objects cannot be
// read in the cluster. Either the cluster's API server does not serve their kind but may still store
// the objects, or it is unknown whether the API server serves the kind.
func KindNotServedCondition(work *workv1alpha1.Work, cluster, message string) metav1.Condition {
	return metav1.Condition{
		Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: workv1alpha1.WorkKindNotServedReason,
		Message: fmt.Sprintf("%s. Objects of this kind may exist in cluster %s: repair its API server. If they may stay there: %s",
			message, cluster, confirmCommand(work)),
	}
}

// HeldFor returns why the Work's deletion is held because of the number of deletions. It returns
// guard.NoReason if the deletion is not held, or is held for any other reason, because all other
// reasons are facts that are read again for each decision.
func HeldFor(work *workv1alpha1.Work) guard.Reason {
	held := conditions.Get(work.Status.Conditions, workv1alpha1.WorkDeletionHeld)
	if held == nil || held.Status != metav1.ConditionTrue {
		return guard.NoReason
	}
	switch held.Reason {
	case workv1alpha1.WorkClusterChangedReason:
		return guard.ReasonClusterChanged
	case workv1alpha1.WorkDeletionBudgetExceededReason:
		return guard.ReasonBudgetExceeded
	default:
		return guard.NoReason
	}
}

// confirmCommand returns the command that confirms the Work's held deletion.
func confirmCommand(work *workv1alpha1.Work) string {
	return fmt.Sprintf("karmadactl held confirm %s", HeldName(work))
}

// confirmAllCommand returns the command that confirms all deletions that are held for the given reason
// in the given cluster.
func confirmAllCommand(cluster, reason string) string {
	return fmt.Sprintf("karmadactl held confirm --cluster %s --reason %s", cluster, reason)
}

// HeldName returns the name by which karmadactl's commands identify the Work's held deletion. It
// consists of the cluster's name and the Work's name.
func HeldName(work *workv1alpha1.Work) string {
	cluster, _ := ClusterOf(work.Namespace)
	return cluster + "/" + work.Name
}
