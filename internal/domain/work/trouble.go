package work

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// troubleBytes bounds what is said of one cluster.
const troubleBytes = 512

// troubleConditions are conditions of workloads that say why Pods are missing, and
// the status that says so, in the order of how much they explain.
var troubleConditions = []struct{ kind, status string }{
	{workv1alpha2.MemberConditionPodFailure, "True"},
	{"ReplicaFailure", "True"},
	{"Progressing", "False"},
}

// Troubles returns, by cluster, why workloads that were applied do not run as they
// should, as far as the members say. A workload that only is on its way has no
// trouble.
func Troubles(items []workv1alpha2.AggregatedStatusItem) map[string]string {
	troubles := map[string]string{}
	for i := range items {
		item := &items[i]
		if !item.Applied || item.Health != workv1alpha2.ResourceUnhealthy || item.Status == nil {
			continue
		}
		if trouble := troubleIn(item.Status.Raw); trouble != "" {
			troubles[item.ClusterName] = conditions.Shorten(trouble, troubleBytes)
		}
	}
	return troubles
}

// troubleIn is empty for a status that says of no trouble, or cannot be read.
func troubleIn(raw []byte) string {
	var status struct {
		Conditions []struct{ Type, Status, Reason, Message string } `json:"conditions"`
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return ""
	}
	var parts []string
	for _, trouble := range troubleConditions {
		for _, c := range status.Conditions {
			if c.Type == trouble.kind && c.Status == trouble.status {
				parts = append(parts, strings.TrimSuffix(cmp.Or(c.Reason, c.Type)+": "+c.Message, ": "))
			}
		}
	}
	return strings.Join(slices.Compact(parts), "; ")
}
