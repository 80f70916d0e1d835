package work

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/causes"
)

// Texts about clusters to which dispatching is suspended.
const (
	suspendedMessage   = "dispatching is suspended"
	suspendedForPrefix = "Dispatching is suspended for "
	notApplied         = "not applied"
	presentNotApplied  = "the present version is not applied"
)

// FullyApplied is the condition that all expected clusters have the template as it
// is now, and no others have it. Generation is that of the binding; the time of a
// transition is left to the caller.
//
// The message names clusters, each with its first cause, in the order of their
// names, as many as a message may hold. When suspension is the only cause, the
// message does not speak of a failure. The reason stays the one that clients know.
func (a Account) FullyApplied(expected sets.Set[string], generation int64) metav1.Condition {
	condition := metav1.Condition{
		Type: workv1alpha2.FullyApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: workv1alpha2.FullyAppliedSuccessReason, Message: workv1alpha2.FullyAppliedSuccessMessage,
	}
	switch failed := a.causes(expected); {
	case len(expected) == 0 && len(failed) == 0:
		condition.Message = workv1alpha2.FullyAppliedFailedMessage + ": no cluster is chosen"
	case len(failed) > 0:
		condition.Message = a.failure(failed)
	default:
		if remarks := a.remarks(expected); len(remarks) > 0 {
			condition.Message = causes.Enumerate(condition.Message+"; ", remarks)
		}
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionFalse, workv1alpha2.FullyAppliedFailedReason
	return condition
}

// failure returns the message for clusters that do not have what they should.
func (a Account) failure(byCluster map[string]string) string {
	suspended := map[string]string{}
	for cluster, cause := range byCluster {
		if cause == a.suspended[cluster] {
			suspended[cluster] = strings.TrimSuffix(cause, ", "+suspendedMessage)
		}
	}
	if len(suspended) == len(byCluster) {
		return causes.Enumerate(suspendedForPrefix, suspended)
	}
	return causes.Enumerate(workv1alpha2.FullyAppliedFailedMessage+": ", byCluster)
}

// Behind tells whether an expected cluster does not have the newest state of its
// Work yet, and is likely to get it soon.
func (a Account) Behind(expected sets.Set[string]) bool {
	for cluster := range expected {
		if _, unready := a.unready[cluster]; a.behind[cluster] && !unready && !a.settled[cluster] {
			return true
		}
	}
	return false
}

// causes are, by cluster, why the template is not, or not only, where it has to be.
func (a Account) causes(expected sets.Set[string]) map[string]string {
	byCluster := map[string]string{}
	for cluster := range expected {
		byCluster[cluster] = "there is no Work yet"
	}
	for i := range a.Items {
		item := &a.Items[i]
		delete(byCluster, item.ClusterName)
		if cause := a.cause(item, expected.Has(item.ClusterName)); cause != "" {
			byCluster[item.ClusterName] = cause
		}
	}
	for cluster := range a.purging {
		byCluster[cluster] = a.purgeCause(cluster)
	}
	return byCluster
}

// purgeCause tells why a cluster that is expected no more keeps others waiting.
func (a Account) purgeCause(cluster string) string {
	const cause = "evicted with purge mode Directly, so no other cluster gets changes before the copy there is gone"
	if since, unready := a.unready[cluster]; unready {
		return fmt.Sprintf("%s; the cluster is not ready since %s", cause, since.UTC().Format(time.RFC3339))
	}
	return cause
}

// cause is empty for a cluster that has what it should.
func (a Account) cause(item *workv1alpha2.AggregatedStatusItem, expected bool) string {
	since, unready := a.unready[item.ClusterName]
	switch {
	case !expected:
		return "chosen no more, the Work is still there"
	case !item.Applied && item.AppliedMessage != "":
		return item.AppliedMessage
	case !item.Applied:
		return notApplied + " yet"
	case a.suspended[item.ClusterName] != "":
		return a.suspended[item.ClusterName]
	case a.behind[item.ClusterName] && unready:
		return fmt.Sprintf(presentNotApplied+", the cluster is not ready since %s", since.UTC().Format(time.RFC3339))
	case a.behind[item.ClusterName]:
		return presentNotApplied + " yet"
	default:
		return ""
	}
}

// remarks are what there is to know of clusters although they have the template.
func (a Account) remarks(expected sets.Set[string]) map[string]string {
	byCluster := map[string]string{}
	for cluster := range expected {
		if _, unready := a.unready[cluster]; unready {
			byCluster[cluster] = "the status is old, the cluster is not ready"
		} else if a.held[cluster] {
			byCluster[cluster] = suspendedMessage
		}
	}
	return byCluster
}
