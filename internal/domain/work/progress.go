package work

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// replicaCounts are the status fields that kinds with replicas have in common: Deployments,
// ReplicaSets, StatefulSets, DaemonSets, and many custom kinds.
type replicaCounts struct {
	Generation          int64 `json:"generation"`
	TemplateGeneration  int64 `json:"resourceTemplateGeneration"`
	ObservedGeneration  int64 `json:"observedGeneration"`
	Replicas            int64 `json:"replicas"`
	ReadyReplicas       int64 `json:"readyReplicas"`
	UpdatedReplicas     int64 `json:"updatedReplicas"`
	UnavailableReplicas int64 `json:"unavailableReplicas"`
	NumberUnavailable   int64 `json:"numberUnavailable"`
}

// RolloutProgress is a rollout's progress according to the status of the workload.
type RolloutProgress struct {
	// IsStable is false during a rolling update. The status may be healthy at every step of the update,
	// but is about to change again.
	IsStable bool
	// TemplateGeneration is the generation of the template from which the object was created. It is 0
	// if the status does not contain the generation.
	TemplateGeneration int64
}

// ParseProgress parses the progress from a status that a member reported. A status without replica
// counts is stable. The result may be imprecise, because it only determines how soon a status is
// written.
func ParseProgress(status *runtime.RawExtension) RolloutProgress {
	if status == nil || len(status.Raw) == 0 {
		return RolloutProgress{IsStable: true}
	}
	var c replicaCounts
	if err := json.Unmarshal(status.Raw, &c); err != nil {
		return RolloutProgress{IsStable: true}
	}
	return RolloutProgress{IsStable: c.isStable(), TemplateGeneration: c.TemplateGeneration}
}

func (r replicaCounts) isStable() bool {
	switch {
	case r.UnavailableReplicas > 0 || r.NumberUnavailable > 0:
		return false
	case r.ObservedGeneration > 0 && r.ObservedGeneration < r.Generation:
		return false
	case r.UpdatedReplicas > 0 && r.UpdatedReplicas != r.Replicas:
		return false
	default:
		return r.ReadyReplicas == r.Replicas
	}
}
