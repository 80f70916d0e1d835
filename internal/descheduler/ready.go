package descheduler

import (
	"encoding/json"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// unknownReady stands for a number of ready replicas that the status does not contain. Many kinds omit
// the number if it is 0.
const unknownReady int64 = -1

// reportedStatuses returns the binding's aggregated status items by cluster name.
func reportedStatuses(status *workv1alpha2.ResourceBindingStatus) map[string]*workv1alpha2.AggregatedStatusItem {
	byCluster := make(map[string]*workv1alpha2.AggregatedStatusItem, len(status.AggregatedStatus))
	for i := range status.AggregatedStatus {
		byCluster[status.AggregatedStatus[i].ClusterName] = &status.AggregatedStatus[i]
	}
	return byCluster
}

// readyReplicas returns the field readyReplicas of the reported status. It returns unknownReady if the
// status or the field is missing, or if the field is not a number of replicas.
func readyReplicas(item *workv1alpha2.AggregatedStatusItem) int64 {
	if item == nil || item.Status == nil {
		return unknownReady
	}
	var status struct {
		ReadyReplicas *int64 `json:"readyReplicas"`
	}
	if err := json.Unmarshal(item.Status.Raw, &status); err != nil || status.ReadyReplicas == nil || *status.ReadyReplicas < 0 {
		return unknownReady
	}
	return *status.ReadyReplicas
}
