package deletionguard

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// hold records a held deletion. If users must be told, it writes a condition and an event that say
// why the deletion is held and what the user can do.
func (g *Guard) hold(cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work, decision Decision) {
	g.works.hold(karmadaWork, g.now(), !decision.Reason.IsTransient())
	if !decision.IsReported {
		return
	}
	condition := work.DeletionHeldCondition(karmadaWork, cluster.Name, decision.Reason)
	if decision.Reason == guard.ReasonRestoreUnconfirmed {
		condition = work.RestoreNotConfirmedCondition(karmadaWork, decision.epoch.HoldMessage())
	}
	if !g.reportHeld(cluster, karmadaWork, condition) {
		return
	}
	switch decision.Reason {
	case guard.ReasonClusterChanged, guard.ReasonBudgetExceeded, guard.ReasonRestoreUnconfirmed:
		// One event on the Cluster covers all deletions that are held for this reason.
		if g.works.swapAnnouncedReason(cluster.Name, condition.Reason) != condition.Reason {
			g.events.RecordFailure(cluster, condition.Reason, errors.New(condition.Message))
		}
	default:
		g.events.RecordFailure(karmadaWork, workv1alpha1.EventReasonDeletionHeld, errors.New(condition.Message))
	}
}

// ReportUnservedKind writes the condition that reports that the objects of a deleted Work cannot be
// read in the member, because the member does not serve their kind but may store them.
func (g *Guard) ReportUnservedKind(cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work, cause error) {
	g.reportHeld(cluster, karmadaWork, work.KindNotServedCondition(karmadaWork, cluster.Name, cause.Error()))
}

// reportHeld counts a held deletion and writes its condition. It reports whether the condition
// changed, which is not the case if an earlier process wrote the same condition.
func (g *Guard) reportHeld(cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work, condition metav1.Condition) (isChanged bool) {
	g.works.countHeld(karmadaWork, cluster.Name, condition.Reason)
	current := conditions.Get(g.reports.Latest(karmadaWork).Status.Conditions, condition.Type)
	if current != nil && current.Status == condition.Status && current.Reason == condition.Reason && current.Message == condition.Message {
		return false
	}
	condition.LastTransitionTime = metav1.NewTime(g.now())
	g.reports.Submit(karmadaWork, loop.ConditionPart(condition.Type), loop.StatusSettled, func(status *workv1alpha1.WorkStatus) {
		conditions.Set(&status.Conditions, condition)
	})
	return true
}
