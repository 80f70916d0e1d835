package work

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// Messages about clusters to which dispatching is suspended.
const (
	suspendedMessage   = "dispatching is suspended"
	suspendedForPrefix = "Dispatching is suspended for "
	notAppliedMessage  = "not applied"
	outdatedMessage    = "the current version is not applied"
)

// FullyAppliedCondition returns the condition that reports whether exactly the expected clusters have
// the current template. generation is the binding's generation. The caller sets the transition time.
//
// The message lists as many clusters as fit, sorted by name, each with its first cause. If suspension
// is the only cause, the message does not mention a failure. The condition's reason is the same for all
// causes, because clients rely on it.
func (a Aggregation) FullyAppliedCondition(expected sets.Set[string], generation int64) metav1.Condition {
	condition := metav1.Condition{
		Type: workv1alpha2.FullyApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: workv1alpha2.FullyAppliedSuccessReason, Message: workv1alpha2.FullyAppliedSuccessMessage,
	}
	switch failed := a.causesByCluster(expected); {
	case len(expected) == 0 && len(failed) == 0 && a.wantsNoCopy:
		condition.Message += "; 0 replicas are wanted, so no cluster has a copy"
		return condition
	case len(expected) == 0 && len(failed) == 0:
		condition.Message = workv1alpha2.FullyAppliedFailedMessage + ": no cluster is chosen"
	case len(failed) > 0:
		condition.Message = a.failureMessage(failed)
	default:
		if remarks := a.remarksByCluster(expected); len(remarks) > 0 {
			condition.Message = conditions.EnumerateCauses(condition.Message+"; ", remarks)
		}
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionFalse, workv1alpha2.FullyAppliedFailedReason
	return condition
}

// failureMessage returns the message for clusters that do not have their desired state.
func (a Aggregation) failureMessage(byCluster map[string]string) string {
	suspended := map[string]string{}
	for cluster, cause := range byCluster {
		if cause == a.suspensionCauses[cluster] {
			suspended[cluster] = strings.TrimSuffix(cause, ", "+suspendedMessage)
		}
	}
	if len(suspended) == len(byCluster) {
		return conditions.EnumerateCauses(suspendedForPrefix, suspended)
	}
	return conditions.EnumerateCauses(workv1alpha2.FullyAppliedFailedMessage+": ", byCluster)
}

// HasPendingApply reports whether an expected cluster does not have its Work's current generation yet,
// but will probably get it soon.
func (a Aggregation) HasPendingApply(expected sets.Set[string]) bool {
	for cluster := range expected {
		if _, unready := a.notReadySince[cluster]; a.outdated[cluster] && !unready && !a.suspensionObserved[cluster] {
			return true
		}
	}
	return false
}

// causesByCluster maps each cluster that is not in its desired state to the cause. An expected
// cluster's desired state is to have the current template. Any other cluster's desired state is not to
// have the template.
func (a Aggregation) causesByCluster(expected sets.Set[string]) map[string]string {
	byCluster := map[string]string{}
	for cluster := range expected {
		byCluster[cluster] = "there is no Work yet"
	}
	for i := range a.Items {
		item := &a.Items[i]
		delete(byCluster, item.ClusterName)
		if cause := a.failureCause(item, expected.Has(item.ClusterName)); cause != "" {
			byCluster[item.ClusterName] = cause
		}
	}
	for cluster := range a.purging {
		byCluster[cluster] = a.purgeCause(cluster)
	}
	for cluster, cause := range byCluster {
		if problem := a.credentialsProblem(cluster); problem != "" && cause != a.suspensionCauses[cluster] {
			byCluster[cluster] = cause + "; " + problem
		}
	}
	return byCluster
}

// purgeCause returns why the given cluster, from which the workload was evicted, blocks the changes of
// other clusters.
func (a Aggregation) purgeCause(cluster string) string {
	const cause = "evicted with purge mode Directly, so no other cluster gets changes before the copy there is gone"
	if since, unready := a.notReadySince[cluster]; unready {
		return fmt.Sprintf("%s; the cluster is not ready since %s", cause, since.UTC().Format(time.RFC3339))
	}
	return cause
}

// failureCause returns why a cluster is not in its desired state, or "" if it is.
func (a Aggregation) failureCause(item *workv1alpha2.AggregatedStatusItem, expected bool) string {
	since, unready := a.notReadySince[item.ClusterName]
	switch {
	case !expected:
		return "no longer chosen, but its Work still exists"
	case !item.Applied && item.AppliedMessage != "":
		return item.AppliedMessage
	case !item.Applied:
		return notAppliedMessage + " yet"
	case a.suspensionCauses[item.ClusterName] != "":
		return a.suspensionCauses[item.ClusterName]
	case a.outdated[item.ClusterName] && unready:
		return fmt.Sprintf(outdatedMessage+", the cluster is not ready since %s", since.UTC().Format(time.RFC3339))
	case a.outdated[item.ClusterName]:
		return outdatedMessage + " yet"
	default:
		return ""
	}
}

// remarksByCluster maps each expected cluster that rejects the control plane's requests, is not ready,
// or is suspended, to a remark.
func (a Aggregation) remarksByCluster(expected sets.Set[string]) map[string]string {
	byCluster := map[string]string{}
	for cluster := range expected {
		if problem := a.credentialsProblem(cluster); problem != "" {
			byCluster[cluster] = "the status is old, " + problem
		} else if _, unready := a.notReadySince[cluster]; unready {
			byCluster[cluster] = "the status is old, the cluster is not ready"
		} else if a.suspended[cluster] {
			byCluster[cluster] = suspendedMessage
		}
	}
	return byCluster
}
