package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/guard"
)

// DeletionHeldCondition returns the condition that reports that the deletion of the Work is held:
// its objects stay in the cluster until a user confirms the deletion or an explanation is found.
// The caller sets the time of the transition.
func DeletionHeldCondition(work *workv1alpha1.Work, cluster string, reason guard.Reason) metav1.Condition {
	condition := metav1.Condition{
		Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
	}
	confirm := fmt.Sprintf("The objects stay in cluster %s. If the deletion is right, confirm all that were begun so far: %s",
		cluster, confirmCommand(cluster))
	switch reason {
	case guard.ReasonFleetDeletion:
		condition.Reason = workv1alpha1.WorkFleetDeletionStoppedReason
		condition.Message = fmt.Sprintf("Many clusters were about to lose Works at the same time, and nothing that a user did explains it; an event on Cluster %s has the numbers. %s. For all clusters at once: %s",
			cluster, confirm, confirmCommand("--all"))
	case guard.ReasonClusterChanged:
		condition.Reason = workv1alpha1.WorkClusterChangedReason
		condition.Message = fmt.Sprintf("Cluster %s does not match the placements of many workloads since its labels, provider, region or zones changed; to undo that, change them back. %s", cluster, confirm)
	case guard.ReasonTemplateInUse:
		condition.Reason = workv1alpha1.WorkBindingMissingReason
		condition.Message = "The binding of the Work was deleted, but its template exists and a policy claims it, or a workload needs it; a new binding takes the objects over. " + confirm
	case guard.ReasonTemplateUnreadable:
		condition.Reason = workv1alpha1.WorkTemplateUnknownReason
		condition.Message = "The binding of the Work is gone, and whether its template was deleted cannot be read in the control plane. " + confirm
	case guard.ReasonTemplateNotServed:
		condition.Reason = workv1alpha1.WorkTemplateKindNotServedReason
		condition.Message = "The binding of the Work is gone, and the control plane does not serve the kind of its template; install its CustomResourceDefinition again to keep the objects. " + confirm
	default:
		condition.Reason = workv1alpha1.WorkMassDeletionStoppedReason
		condition.Message = MassDeletionMessage(cluster)
	}
	return condition
}

// RestoreNotConfirmedCondition returns the condition that reports that the deletion of the Work is
// held: its objects stay in the cluster until a user confirms the restore of the control plane. The
// caller sets the time of the transition.
func RestoreNotConfirmedCondition(work *workv1alpha1.Work, message string) metav1.Condition {
	return metav1.Condition{
		Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: workv1alpha1.WorkRestoreNotConfirmedReason, Message: message,
	}
}

// KindNotServedCondition returns the condition that reports that the objects of a deleted Work
// cannot be read in the cluster. Either the API server of the cluster does not serve their kind but
// may store the objects, or it is unknown whether the API server serves the kind.
func KindNotServedCondition(work *workv1alpha1.Work, cluster, message string) metav1.Condition {
	return metav1.Condition{
		Type: workv1alpha1.WorkDeletionHeld, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: workv1alpha1.WorkKindNotServedReason,
		Message: fmt.Sprintf("%s. Objects of this kind may exist in cluster %s: repair its API server. If they may stay there, confirm all deletions that were begun so far: %s",
			message, cluster, confirmCommand(cluster)),
	}
}

// IsHeldAsMassDeletion reports whether the deletion of a Work is held as part of a mass deletion in
// its cluster or in many clusters.
func IsHeldAsMassDeletion(work *workv1alpha1.Work) bool {
	held := conditions.Get(work.Status.Conditions, workv1alpha1.WorkDeletionHeld)
	return held != nil && held.Status == metav1.ConditionTrue &&
		(held.Reason == workv1alpha1.WorkMassDeletionStoppedReason || held.Reason == workv1alpha1.WorkClusterChangedReason || held.Reason == workv1alpha1.WorkFleetDeletionStoppedReason)
}

// MassDeletionMessage returns the message that a mass deletion in a cluster is held. The message
// contains the command that confirms the deletion.
func MassDeletionMessage(cluster string) string {
	return fmt.Sprintf("A large part of what cluster %s holds was about to be deleted, and nothing that a user did explains it. "+
		"The objects stay in the cluster. If it is right, confirm all that was begun so far: %s", cluster, confirmCommand(cluster))
}

// FleetDeletionMessage returns the message that a mass deletion in many clusters is held. The
// message contains the command that confirms the deletion.
func FleetDeletionMessage(losses string) string {
	return fmt.Sprintf("%s were about to be deleted within minutes, and nothing that a user did explains it. "+
		"The objects stay in the clusters. If it is right, confirm all that was begun so far: %s", losses, confirmCommand("--all"))
}

// confirmCommand returns the command that confirms the deletions in a cluster, or in all clusters.
func confirmCommand(cluster string) string {
	return fmt.Sprintf(`kubectl annotate cluster %s --overwrite %s="$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)"`,
		cluster, workv1alpha1.ConfirmDeletionsAnnotation)
}
