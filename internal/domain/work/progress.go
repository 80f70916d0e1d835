package work

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// counts are what kinds with replicas report under these names: Deployments,
// ReplicaSets, StatefulSets, DaemonSets, and many custom kinds after them.
type counts struct {
	Generation          int64 `json:"generation"`
	TemplateGeneration  int64 `json:"resourceTemplateGeneration"`
	ObservedGeneration  int64 `json:"observedGeneration"`
	Replicas            int64 `json:"replicas"`
	ReadyReplicas       int64 `json:"readyReplicas"`
	UpdatedReplicas     int64 `json:"updatedReplicas"`
	UnavailableReplicas int64 `json:"unavailableReplicas"`
	NumberUnavailable   int64 `json:"numberUnavailable"`
}

// Progress is what a status tells of a change that is under way.
type Progress struct {
	// Settled tells that the status looks like one that stays: a rolling update is
	// healthy at every step, and yet about to report the next one.
	Settled bool
	// TemplateGeneration is the generation of the template that the object was made
	// from, 0 when the status does not say.
	TemplateGeneration int64
}

// ProgressOf reads a status that a member reported. What does not count replicas
// counts as settled: this only says how much news hurries, so a guess will do.
func ProgressOf(status *runtime.RawExtension) Progress {
	if status == nil || len(status.Raw) == 0 {
		return Progress{Settled: true}
	}
	var c counts
	if err := json.Unmarshal(status.Raw, &c); err != nil {
		return Progress{Settled: true}
	}
	return Progress{Settled: c.settled(), TemplateGeneration: c.TemplateGeneration}
}

func (c counts) settled() bool {
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
