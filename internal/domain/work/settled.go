package work

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// counts are what kinds with replicas report under these names: Deployments,
// ReplicaSets, StatefulSets, DaemonSets, and many custom kinds after them.
type counts struct {
	Generation          int64 `json:"generation"`
	ObservedGeneration  int64 `json:"observedGeneration"`
	Replicas            int64 `json:"replicas"`
	ReadyReplicas       int64 `json:"readyReplicas"`
	UpdatedReplicas     int64 `json:"updatedReplicas"`
	UnavailableReplicas int64 `json:"unavailableReplicas"`
	NumberUnavailable   int64 `json:"numberUnavailable"`
}

// Settled tells whether a status looks like one that stays: a rolling update is
// healthy at every step, and yet about to report the next one. What does not count
// replicas counts as settled. It only says how much news hurries, so a guess will
// do.
func Settled(status *runtime.RawExtension) bool {
	if status == nil || len(status.Raw) == 0 {
		return true
	}
	var c counts
	if err := json.Unmarshal(status.Raw, &c); err != nil {
		return true
	}
	switch {
	case c.UnavailableReplicas > 0 || c.NumberUnavailable > 0:
		return false
	case c.ObservedGeneration > 0 && c.ObservedGeneration < c.Generation:
		return false
	case c.UpdatedReplicas > 0 && c.UpdatedReplicas != c.Replicas:
		return false
	default:
		return c.ReadyReplicas == c.Replicas
	}
}
