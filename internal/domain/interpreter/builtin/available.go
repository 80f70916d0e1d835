package builtin

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/causes"
)

// Messages of the conditions of a Deployment over many clusters.
const (
	noClusterMessage   = "no cluster is chosen"
	notReportedMessage = "nothing is reported yet"
	everywhereMessage  = "True in every cluster"
)

// conditionAggregator makes the conditions of a Deployment from those of its
// clusters, beside its sums:
//
//   - Available and Progressing are True when they are in every cluster; else they
//     are the worst of all clusters, and the message names those that are not True.
//   - ReplicaFailure and PodFailure are there while a cluster has them.
//   - Conditions of other types stay.
//   - Times move only when the status of a condition changes, and no condition
//     appears before a cluster has told something: a delivery that goes well needs
//     no write more than the sums need.
type conditionAggregator struct {
	sum aggregateRule
	now func() time.Time
}

func (a conditionAggregator) aggregate(ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	summed, err := a.sum(ctx, template, items)
	if err != nil {
		return nil, err
	}
	states, err := readClusters(items)
	if err != nil {
		return nil, err
	}
	stored, err := nested[[]any](summed.Object, "status", "conditions")
	if err != nil {
		return nil, err
	}
	wanted := slices.Clone(stored)
	for _, kind := range []string{available, progressing} {
		wanted = a.put(wanted, kind, states.worst(kind, isStored(stored, kind)))
	}
	for _, kind := range []string{replicaFailure, workv1alpha2.MemberConditionPodFailure} {
		wanted = a.put(wanted, kind, states.failure(kind))
	}
	if reflect.DeepEqual(stored, wanted) {
		return summed, nil
	}
	return withField(summed, wanted, "status", "conditions")
}

// put replaces the condition of a type in a list, or removes it when there is none.
// The stored entry stays when it says the same. The list may be changed.
func (a conditionAggregator) put(list []any, kind string, wanted *reportedCondition) []any {
	at := slices.IndexFunc(list, func(entry any) bool { return nameOf(entry, "type") == kind })
	if wanted == nil {
		if at < 0 {
			return list
		}
		return slices.Delete(list, at, at+1)
	}
	now := a.now().UTC().Format(time.RFC3339)
	entry := wanted.encoded()
	entry["lastTransitionTime"], entry["lastUpdateTime"] = now, now
	if at < 0 {
		return append(list, entry)
	}
	if nameOf(list[at], "status") == wanted.Status {
		for _, field := range []string{"lastTransitionTime", "lastUpdateTime"} {
			if stored := nameOf(list[at], field); stored != "" {
				entry[field] = stored
			}
		}
	}
	list[at] = entry
	return list
}

func isStored(list []any, kind string) bool {
	return slices.ContainsFunc(list, func(entry any) bool { return nameOf(entry, "type") == kind })
}

// clusterState is what one cluster says of a Deployment.
type clusterState struct {
	item       *workv1alpha2.AggregatedStatusItem
	reported   bool
	conditions []reportedCondition
}

type clusterStates []clusterState

func readClusters(items []workv1alpha2.AggregatedStatusItem) (clusterStates, error) {
	states := make(clusterStates, 0, len(items))
	for i := range items {
		status, found, err := memberStatus[struct {
			Conditions []reportedCondition `json:"conditions"`
		}](&items[i])
		if err != nil {
			return nil, err
		}
		states = append(states, clusterState{item: &items[i], reported: found, conditions: status.Conditions})
	}
	return states, nil
}

func (s clusterState) find(kind string) (reportedCondition, bool) {
	at := slices.IndexFunc(s.conditions, func(c reportedCondition) bool { return c.Type == kind })
	if at < 0 {
		return reportedCondition{}, false
	}
	return s.conditions[at], true
}

// condition is Available or Progressing of one cluster; ok is false when the
// cluster has nothing to say of it. Agents that report no conditions report
// health, which stands for them.
func (s clusterState) condition(kind string) (c reportedCondition, ok bool) {
	found, ok := s.find(kind)
	switch {
	case isUndelivered(*s.item):
		return reportedCondition{kind, conditionFalse, workv1alpha2.TemplateNotAppliedReason, "not applied: " + s.item.AppliedMessage}, true
	case !s.reported:
		return reportedCondition{kind, conditionUnknown, workv1alpha2.TemplateNotReportedReason, notReportedMessage}, true
	case ok:
		return found, true
	case s.item.Health == workv1alpha2.ResourceHealthy && kind == available:
		return reportedCondition{Type: kind, Status: conditionTrue, Reason: minimumAvailableReason}, true
	case kind == available && s.item.Health == workv1alpha2.ResourceUnhealthy:
		return reportedCondition{Type: kind, Status: conditionFalse, Reason: minimumUnavailableReason}, true
	case kind == available:
		return reportedCondition{kind, conditionUnknown, workv1alpha2.TemplateNotReportedReason, notReportedMessage}, true
	case s.item.Health == workv1alpha2.ResourceHealthy && len(s.conditions) == 0:
		return reportedCondition{Type: kind, Status: conditionTrue, Reason: rolledOutReason}, true
	default:
		return reportedCondition{}, false
	}
}

// worst is a condition over all clusters; nil when there is nothing to say. One
// that is stored goes on being said while nothing is known, for it must not stay
// True.
func (s clusterStates) worst(kind string, stored bool) *reportedCondition {
	if len(s) == 0 {
		return onlyIf(stored, reportedCondition{kind, conditionFalse, workv1alpha2.TemplateNoClusterReason, noClusterMessage})
	}
	byStatus, byCluster, known := map[string][]string{}, map[string]string{}, stored
	for _, state := range s {
		c, ok := state.condition(kind)
		if !ok {
			continue
		}
		known = known || c.Reason != workv1alpha2.TemplateNotReportedReason
		status := normalStatus(c.Status)
		byStatus[status] = append(byStatus[status], c.Reason)
		if status != conditionTrue {
			byCluster[state.item.ClusterName] = c.cause()
		}
	}
	for _, status := range []string{conditionFalse, conditionUnknown} {
		if reasons := byStatus[status]; len(reasons) > 0 {
			return onlyIf(known, reportedCondition{kind, status, reasonOf(reasons), causes.Enumerate("", byCluster)})
		}
	}
	if reasons := byStatus[conditionTrue]; len(reasons) > 0 {
		return &reportedCondition{kind, conditionTrue, reasonOf(reasons), everywhereMessage}
	}
	return nil
}

func onlyIf(known bool, c reportedCondition) *reportedCondition {
	if !known {
		return nil
	}
	return &c
}

// normalStatus takes everything but True and False for Unknown.
func normalStatus(status string) string {
	if status == conditionTrue || status == conditionFalse {
		return status
	}
	return conditionUnknown
}

// reasonOf is the reason that all clusters of one status give. When they differ, a
// rollout is over its deadline if it is in one cluster, and complete only if it is
// in all of them; clients look at these two. Else the first in the alphabet counts.
func reasonOf(reasons []string) string {
	distinct := slices.Compact(slices.Sorted(slices.Values(reasons)))
	if slices.Contains(distinct, deadlineExceededReason) {
		return deadlineExceededReason
	}
	if len(distinct) > 1 {
		distinct = slices.DeleteFunc(distinct, func(reason string) bool { return reason == rolledOutReason })
	}
	return distinct[0]
}

// failure is a condition that is there only while a cluster has it.
func (s clusterStates) failure(kind string) *reportedCondition {
	byCluster, reasons := map[string]string{}, map[string]bool{}
	for _, state := range s {
		if c, ok := state.find(kind); ok && c.Status == conditionTrue && !isUndelivered(*state.item) {
			byCluster[state.item.ClusterName] = c.cause()
			reasons[c.Reason] = true
		}
	}
	if len(byCluster) == 0 {
		return nil
	}
	return &reportedCondition{kind, conditionTrue, slices.Sorted(maps.Keys(reasons))[0], causes.Enumerate("", byCluster)}
}
