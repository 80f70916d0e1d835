package descheduling

import (
	"encoding/json"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// UnknownReady is the number of ready replicas of a cluster whose status does not contain this
// number. Many kinds omit the number if it is 0.
const UnknownReady int64 = -1

// reportedStatuses returns the reported statuses of a binding by the name of the cluster.
func reportedStatuses(status *workv1alpha2.ResourceBindingStatus) map[string]*workv1alpha2.AggregatedStatusItem {
	byCluster := make(map[string]*workv1alpha2.AggregatedStatusItem, len(status.AggregatedStatus))
	for i := range status.AggregatedStatus {
		byCluster[status.AggregatedStatus[i].ClusterName] = &status.AggregatedStatus[i]
	}
	return byCluster
}

// readyReplicas returns the field readyReplicas of a reported status. It returns UnknownReady if the
// status is missing, or if the field is missing or not a number of replicas.
func readyReplicas(item *workv1alpha2.AggregatedStatusItem) int64 {
	if item == nil || item.Status == nil {
		return UnknownReady
	}
	var status struct {
		ReadyReplicas *int64 `json:"readyReplicas"`
	}
	if err := json.Unmarshal(item.Status.Raw, &status); err != nil || status.ReadyReplicas == nil || *status.ReadyReplicas < 0 {
		return UnknownReady
	}
	return *status.ReadyReplicas
}
