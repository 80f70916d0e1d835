package work

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// causeBytes bounds what the condition says of one cluster when there are many to
// speak of; its item says it all.
const causeBytes = 200

// FullyApplied is the condition that all expected clusters have the template as it
// is now, and no others have it. Generation is that of the binding; the time of a
// transition is left to the caller.
//
// The message names clusters, each with its first cause, in the order of their
// names, as many as a message may hold.
func (a Account) FullyApplied(expected sets.Set[string], generation int64) metav1.Condition {
	condition := metav1.Condition{
		Type: workv1alpha2.FullyApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: workv1alpha2.FullyAppliedSuccessReason, Message: workv1alpha2.FullyAppliedSuccessMessage,
	}
	told, separator := a.remarks(expected), "; "
	if causes := a.causes(expected); len(causes) > 0 || len(expected) == 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, workv1alpha2.FullyAppliedFailedReason
		condition.Message = workv1alpha2.FullyAppliedFailedMessage
		told, separator = causes, ": "
		if len(causes) == 0 {
			condition.Message += ": no cluster is chosen"
		}
	}
	if len(told) > 0 {
		condition.Message = enumerate(condition.Message+separator, told)
	}
	return condition
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

// clause says the same of some clusters.
type clause struct {
	clusters []string
	says     string
}

// causes are why the template is not, or not only, where it has to be.
func (a Account) causes(expected sets.Set[string]) []clause {
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
	return clauses(byCluster)
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
	case !item.Applied && a.held[item.ClusterName]:
		return "not applied, changes are held back"
	case !item.Applied:
		return "not applied yet"
	case a.behind[item.ClusterName] && a.held[item.ClusterName]:
		return "the present version is not applied, changes are held back"
	case a.behind[item.ClusterName] && unready:
		return fmt.Sprintf("the present version is not applied, the cluster is not ready since %s", since.UTC().Format(time.RFC3339))
	case a.behind[item.ClusterName]:
		return "the present version is not applied yet"
	default:
		return ""
	}
}

// remarks are what there is to know of clusters although they have the template.
func (a Account) remarks(expected sets.Set[string]) []clause {
	byCluster := map[string]string{}
	for cluster := range expected {
		if _, unready := a.unready[cluster]; unready {
			byCluster[cluster] = "the status is old, the cluster is not ready"
		} else if a.held[cluster] {
			byCluster[cluster] = "changes are held back"
		}
	}
	return clauses(byCluster)
}

// clauses gathers clusters of which the same is said, in the order of the first
// cluster of each.
func clauses(byCluster map[string]string) []clause {
	var list []clause
	at := map[string]int{}
	room := roomFor(byCluster)
	for _, cluster := range sets.List(sets.KeySet(byCluster)) {
		says := conditions.Shorten(byCluster[cluster], room)
		i, known := at[says]
		if !known {
			i = len(list)
			at[says] = i
			list = append(list, clause{says: says})
		}
		list[i].clusters = append(list[i].clusters, cluster)
	}
	return list
}

// roomFor is how many bytes there are for each cause: for a lone one all that its
// clusters leave of a message.
func roomFor(byCluster map[string]string) int {
	if sets.New(slices.Collect(maps.Values(byCluster))...).Len() > 1 {
		return causeBytes
	}
	lone := clause{clusters: sets.List(sets.KeySet(byCluster))}
	return max(causeBytes, conditions.MaxMessageBytes-len(lone.String())-len(workv1alpha2.FullyAppliedFailedMessage)-loneMargin)
}

// loneMargin is for what stands between the parts of a message.
const loneMargin = 50

// enumerate appends as many clauses to a text as the message of a condition may
// hold, and the number of clusters left out.
func enumerate(text string, list []clause) string {
	room := conditions.MaxMessageBytes - len("; and 1000000 more clusters")
	var told []string
	used, left := len(text), 0
	for i, each := range list {
		said := each.String()
		if used+len(said)+len("; ") > room {
			for _, rest := range list[i:] {
				left += len(rest.clusters)
			}
			break
		}
		told, used = append(told, said), used+len(said)+len("; ")
	}
	if left > 0 {
		told = append(told, fmt.Sprintf("and %d more clusters", left))
	}
	return text + strings.Join(told, "; ")
}

// namedClusters is how many clusters one clause names.
const namedClusters = 10

func (c clause) String() string {
	names := slices.Clone(c.clusters)
	if more := len(names) - namedClusters; more > 0 {
		names = append(names[:namedClusters], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ") + ": " + c.says
}
