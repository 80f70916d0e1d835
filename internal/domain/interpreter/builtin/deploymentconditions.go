package builtin

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// Messages of the aggregated conditions of a Deployment.
const (
	noClusterMessage   = "no cluster is chosen"
	notReportedMessage = "nothing is reported yet"
	trueInAllMessage   = "True in every cluster"
	scaledToZeroText   = "0 replicas are wanted, so no cluster has a copy"
)

// conditionAggregator aggregates a Deployment's conditions, in addition to its counters:
//
//   - Available and Progressing are True if they are True in every cluster. Otherwise they have the
//     worst status of all clusters, and the message lists the clusters in which they are not True.
//   - Without clusters, they are False, or True if the Deployment is scaled to 0.
//   - ReplicaFailure and PodFailure exist as long as a cluster reports them.
//   - Conditions of other types are kept.
//   - Times change only if a condition's status changes, and conditions are added only after a cluster
//     has reported a status, so that a rollout without problems causes no more writes than its counters.
type conditionAggregator struct {
	aggregateCounters aggregateRule
	now               func() time.Time
}

func (c conditionAggregator) aggregate(
	ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	summed, err := c.aggregateCounters(ctx, template, items)
	if err != nil {
		return nil, err
	}
	states, err := readClusterStates(items)
	if err != nil {
		return nil, err
	}
	stored, err := nested[[]any](summed.Object, "status", "conditions")
	if err != nil {
		return nil, err
	}
	conditions := slices.Clone(stored)
	for _, kind := range []string{availableType, progressingType} {
		desired := states.worstCondition(kind, hasCondition(stored, kind))
		if len(states) == 0 && isScaledToZero(template) {
			desired = scaledToZeroCondition(kind)
		}
		conditions = c.setCondition(conditions, kind, desired)
	}
	for _, kind := range []string{replicaFailureType, workv1alpha2.MemberConditionPodFailure} {
		conditions = c.setCondition(conditions, kind, states.failureCondition(kind))
	}
	if reflect.DeepEqual(stored, conditions) {
		return summed, nil
	}
	return withField(summed, conditions, "status", "conditions")
}

func isScaledToZero(template *unstructured.Unstructured) bool {
	replicas, found, err := unstructured.NestedInt64(template.Object, "spec", "replicas")
	return err == nil && found && replicas == 0
}

// scaledToZeroCondition returns the condition that a Deployment with 0 replicas has in a single cluster.
func scaledToZeroCondition(kind string) *reportedCondition {
	if kind == availableType {
		return &reportedCondition{kind, conditionTrue, minimumAvailableReason, scaledToZeroText}
	}
	return &reportedCondition{kind, conditionTrue, rolledOutReason, scaledToZeroText}
}

// setCondition returns the list with the desired condition of the given type, or without it if desired is
// nil. If its status does not change, the stored times are kept. The list may be modified.
func (c conditionAggregator) setCondition(list []any, kind string, desired *reportedCondition) []any {
	index := slices.IndexFunc(list, func(entry any) bool { return entryText(entry, "type") == kind })
	if desired == nil {
		if index < 0 {
			return list
		}
		return slices.Delete(list, index, index+1)
	}
	now := c.now().UTC().Format(time.RFC3339)
	entry := desired.encode()
	entry["lastTransitionTime"], entry["lastUpdateTime"] = now, now
	if index < 0 {
		return append(list, entry)
	}
	if entryText(list[index], "status") == desired.Status {
		for _, field := range []string{"lastTransitionTime", "lastUpdateTime"} {
			if stored := entryText(list[index], field); stored != "" {
				entry[field] = stored
			}
		}
	}
	list[index] = entry
	return list
}

func hasCondition(list []any, kind string) bool {
	return slices.ContainsFunc(list, func(entry any) bool { return entryText(entry, "type") == kind })
}

// clusterState is the reported status of a Deployment in one cluster.
type clusterState struct {
	item       *workv1alpha2.AggregatedStatusItem
	reported   bool
	conditions []reportedCondition
}

type clusterStates []clusterState

func readClusterStates(items []workv1alpha2.AggregatedStatusItem) (clusterStates, error) {
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

func (s clusterState) findCondition(kind string) (reportedCondition, bool) {
	index := slices.IndexFunc(s.conditions, func(c reportedCondition) bool { return c.Type == kind })
	if index < 0 {
		return reportedCondition{}, false
	}
	return s.conditions[index], true
}

// condition returns the cluster's condition Available or Progressing. ok is false if it was not reported.
// If an agent reports the health but no conditions, the condition is derived from the health.
func (s clusterState) condition(kind string) (c reportedCondition, ok bool) {
	found, ok := s.findCondition(kind)
	switch {
	case isUndelivered(*s.item):
		return reportedCondition{kind, conditionFalse, workv1alpha2.TemplateNotAppliedReason, "not applied: " + s.item.AppliedMessage}, true
	case !s.reported:
		return reportedCondition{kind, conditionUnknown, workv1alpha2.TemplateNotReportedReason, notReportedMessage}, true
	case ok:
		return found, true
	case s.item.Health == workv1alpha2.ResourceHealthy && kind == availableType:
		return reportedCondition{Type: kind, Status: conditionTrue, Reason: minimumAvailableReason}, true
	case kind == availableType && s.item.Health == workv1alpha2.ResourceUnhealthy:
		return reportedCondition{Type: kind, Status: conditionFalse, Reason: minimumUnavailableReason}, true
	case kind == availableType:
		return reportedCondition{kind, conditionUnknown, workv1alpha2.TemplateNotReportedReason, notReportedMessage}, true
	case s.item.Health == workv1alpha2.ResourceHealthy && len(s.conditions) == 0:
		return reportedCondition{Type: kind, Status: conditionTrue, Reason: rolledOutReason}, true
	default:
		return reportedCondition{}, false
	}
}

// worstCondition returns the aggregated condition of all clusters, or nil if no cluster reported it. If
// the template already has the condition (stored), worstCondition returns a condition even if no cluster
// has reported a status, because a stored condition must not stay True.
func (s clusterStates) worstCondition(kind string, stored bool) *reportedCondition {
	if len(s) == 0 {
		return conditionIf(stored, reportedCondition{kind, conditionFalse, workv1alpha2.TemplateNoClusterReason, noClusterMessage})
	}
	byStatus, byCluster, known := map[string][]string{}, map[string]string{}, stored
	for _, state := range s {
		c, ok := state.condition(kind)
		if !ok {
			continue
		}
		known = known || c.Reason != workv1alpha2.TemplateNotReportedReason
		status := normalizeStatus(c.Status)
		byStatus[status] = append(byStatus[status], c.Reason)
		if status != conditionTrue {
			byCluster[state.item.ClusterName] = c.cause()
		}
	}
	for _, status := range []string{conditionFalse, conditionUnknown} {
		if reasons := byStatus[status]; len(reasons) > 0 {
			return conditionIf(known, reportedCondition{kind, status, commonReason(reasons), conditions.EnumerateCauses("", byCluster)})
		}
	}
	if reasons := byStatus[conditionTrue]; len(reasons) > 0 {
		return &reportedCondition{kind, conditionTrue, commonReason(reasons), trueInAllMessage}
	}
	return nil
}

func conditionIf(known bool, c reportedCondition) *reportedCondition {
	if !known {
		return nil
	}
	return &c
}

// normalizeStatus returns Unknown for every status except True and False.
func normalizeStatus(status string) string {
	if status == conditionTrue || status == conditionFalse {
		return status
	}
	return conditionUnknown
}

// commonReason returns a single reason for clusters with the same status. Clients evaluate two reasons:
// ProgressDeadlineExceeded takes precedence, and NewReplicaSetAvailable is returned only if all clusters
// have it. Otherwise, the alphabetically first reason is returned.
func commonReason(reasons []string) string {
	distinct := slices.Compact(slices.Sorted(slices.Values(reasons)))
	if slices.Contains(distinct, deadlineExceededReason) {
		return deadlineExceededReason
	}
	if len(distinct) > 1 {
		distinct = slices.DeleteFunc(distinct, func(reason string) bool { return reason == rolledOutReason })
	}
	return distinct[0]
}

// failureCondition returns the aggregated condition of a type that exists only as long as a cluster has
// it, or nil if no cluster has it.
func (s clusterStates) failureCondition(kind string) *reportedCondition {
	byCluster, reasons := map[string]string{}, map[string]bool{}
	for _, state := range s {
		if c, ok := state.findCondition(kind); ok && c.Status == conditionTrue && !isUndelivered(*state.item) {
			byCluster[state.item.ClusterName] = c.cause()
			reasons[c.Reason] = true
		}
	}
	if len(byCluster) == 0 {
		return nil
	}
	return &reportedCondition{kind, conditionTrue, slices.Sorted(maps.Keys(reasons))[0], conditions.EnumerateCauses("", byCluster)}
}
