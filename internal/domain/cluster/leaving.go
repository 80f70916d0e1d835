package cluster

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// BindingRemovalDelay is how long after a Cluster's deletion schedulers may take to remove the Cluster
// from their bindings. After that, the controller manager removes it.
const BindingRemovalDelay = 30 * time.Second

// BlockerNamingDelay is how long after a Cluster's deletion the condition Leaving begins to name the
// objects that block the deletion. Usually the Cluster no longer exists by then.
const BlockerNamingDelay = 5 * time.Second

// maxNamedBlockers is the maximum number of Works or bindings that the condition Leaving names.
const maxNamedBlockers = 3

// worksWaitReason returns what the Cluster's Works wait for.
func worksWaitReason(cluster *clusterv1alpha1.Cluster) string {
	return cmp.Or(DeletingCluster{Cluster: cluster}.unreachableReason(), worksDeletingMessage)
}

// bindingsWaitReason returns what bindings that list the Cluster wait for.
func bindingsWaitReason() string {
	return fmt.Sprintf("its scheduler removes the cluster, or karmada-controller-manager does %s after the deletion", BindingRemovalDelay)
}

// RemainingObjects are the objects that block a Cluster's deletion.
type RemainingObjects struct {
	// WorksGone is true if the cluster has no Works and will get no more Works. Works may be empty even
	// if WorksGone is false.
	WorksGone bool
	// Works and Bindings are the sorted names of the remaining Works and bindings.
	Works, Bindings []string
}

// SetLeavingConditions sets the conditions of a Cluster in deletion. remains must be read from the API
// server. As long as Works remain, the condition Ready stays unchanged, because objects are deleted
// only in a cluster that is ready.
func SetLeavingConditions(cluster *clusterv1alpha1.Cluster, remains RemainingObjects, now time.Time) {
	stored := &cluster.Status.Conditions
	leaving := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionLeaving, Status: metav1.ConditionTrue,
		ObservedGeneration: cluster.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	nameBlockers := cluster.DeletionTimestamp != nil && now.Sub(cluster.DeletionTimestamp.Time) >= BlockerNamingDelay
	switch {
	case !remains.WorksGone:
		leaving.Reason = clusterv1alpha1.LeavingWorksRemainReason
		leaving.Message = remainingMessage("Works", remains.Works, nameBlockers, worksWaitReason(cluster))
	case len(remains.Bindings) > 0:
		leaving.Reason = clusterv1alpha1.LeavingBindingsRemainReason
		leaving.Message = remainingMessage("bindings", remains.Bindings, nameBlockers, bindingsWaitReason())
	default:
		leaving.Reason = clusterv1alpha1.LeavingFinalizersRemainReason
		leaving.Message = "remaining finalizers: " + strings.Join(cluster.Finalizers, ", ")
	}
	conditions.Set(stored, leaving)
	if !remains.WorksGone {
		return
	}
	conditions.Remove(stored, clusterv1alpha1.ClusterConditionResponding)
	conditions.Set(stored, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterReasonLeaving,
		Message:            "the cluster was deleted, and its Works are gone",
		ObservedGeneration: cluster.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// remainingMessage describes which objects of a kind remain and what they wait for. It does not contain
// the number of objects, because the number would change with each object that is deleted.
func remainingMessage(kind string, names []string, nameThem bool, wait string) string {
	if !nameThem || len(names) == 0 {
		return fmt.Sprintf("remaining %s: %s", kind, wait)
	}
	more := ""
	if len(names) > maxNamedBlockers {
		more = " and others"
	}
	return fmt.Sprintf("remaining %s: %s%s: %s", kind, strings.Join(names[:min(len(names), maxNamedBlockers)], ", "), more, wait)
}

// isLeaving reports whether the condition Ready shows that the cluster was deleted. Probes of the
// member do not change such a condition.
func isLeaving(ready *metav1.Condition) bool {
	return ready != nil && ready.Reason == clusterv1alpha1.ClusterReasonLeaving
}

// RetentionReason returns why propagated objects would stay in the member if its Cluster was deleted
// now. It returns "" if the objects would be deleted.
func RetentionReason(cluster *clusterv1alpha1.Cluster) string {
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case ready == nil:
		return "its status was never collected"
	case ready.Status != metav1.ConditionTrue:
		return ready.Message
	default:
		return ""
	}
}
