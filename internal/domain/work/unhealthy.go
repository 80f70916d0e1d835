package work

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// maxReasonBytes is the maximum length of each cluster's reason, in bytes.
const maxReasonBytes = 512

// unhealthyConditions are the workload conditions that explain why Pods are missing, each with the
// status that indicates missing Pods. Conditions with more specific explanations come first.
var unhealthyConditions = []struct{ kind, status string }{
	{workv1alpha2.MemberConditionPodFailure, "True"},
	{"ReplicaFailure", "True"},
	{"Progressing", "False"},
}

// UnhealthyReasons maps each cluster whose member reports an unhealthy workload to the reported reason.
// It considers only applied workloads. A rollout in progress is not a reason.
func UnhealthyReasons(items []workv1alpha2.AggregatedStatusItem) map[string]string {
	troubles := map[string]string{}
	for i := range items {
		item := &items[i]
		if !item.Applied || item.Health != workv1alpha2.ResourceUnhealthy || item.Status == nil {
			continue
		}
		if trouble := unhealthyReason(item.Status.Raw); trouble != "" {
			troubles[item.ClusterName] = conditions.Truncate(trouble, maxReasonBytes)
		}
	}
	return troubles
}

// unhealthyReason returns the reason from the first unhealthy condition of the given status. It returns
// "" if the status has no such condition or cannot be parsed.
func unhealthyReason(raw []byte) string {
	var status struct {
		Conditions []struct{ Type, Status, Reason, Message string } `json:"conditions"`
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return ""
	}
	var parts []string
	for _, trouble := range unhealthyConditions {
		for _, c := range status.Conditions {
			if c.Type == trouble.kind && c.Status == trouble.status {
				parts = append(parts, strings.TrimSuffix(cmp.Or(c.Reason, c.Type)+": "+c.Message, ": "))
			}
		}
	}
	return strings.Join(slices.Compact(parts), "; ")
}
