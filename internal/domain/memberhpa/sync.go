package memberhpa

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// SyncAction is what to do about the replicas of a template.
type SyncAction string

const (
	// NothingToSync means that the template keeps its replicas.
	NothingToSync SyncAction = "Nothing"
	// WaitForStatus means that the statuses do not yet describe the same state as the template.
	WaitForStatus SyncAction = "Wait"
	// CopyReplicas means that the template gets the replicas that its copies have.
	CopyReplicas SyncAction = "Copy"
)

// DecideSync decides whether the template of a Deployment gets the number of replicas that its copies
// have, so that the next scheduling starts with it. bound is the Deployment's binding, or nil if it has
// none. replicas is the new number if the action is CopyReplicas.
//
// The statuses are used only if all parts of the chain from the template to its status agree: the
// scheduler has divided the template's replicas, and each cluster has reported replicas, whose sum is
// the template's status. A template without clusters keeps its replicas, because its status shows only
// that nothing runs.
func DecideSync(template *unstructured.Unstructured, bound *workv1alpha2.ResourceBinding) (action SyncAction, replicas int64) {
	if !HasMark(template) || bound == nil || !binding.IsDivided(&bound.Spec) {
		return NothingToSync, 0
	}
	desired, isSet, err := unstructured.NestedInt64(template.Object, "spec", "replicas")
	if err != nil || !isSet {
		return NothingToSync, 0
	}
	current, _, err := unstructured.NestedInt64(template.Object, "status", "replicas")
	switch {
	case err != nil || desired == current:
		return NothingToSync, 0
	case desired != int64(bound.Spec.Replicas), !binding.IsScheduled(bound):
		return WaitForStatus, 0
	}
	if sum, isComplete := sumReplicas(bound); !isComplete || sum != current {
		return WaitForStatus, 0
	}
	return CopyReplicas, current
}

// sumReplicas returns the sum of the replicas that all clusters report. isComplete is false if a
// cluster has not reported any, or if there are no clusters.
func sumReplicas(bound *workv1alpha2.ResourceBinding) (sum int64, isComplete bool) {
	items := bound.Status.AggregatedStatus
	if len(items) == 0 || len(items) != len(bound.Spec.Clusters) {
		return 0, false
	}
	for i := range items {
		var status struct {
			Replicas int64 `json:"replicas"`
		}
		if items[i].Status == nil || json.Unmarshal(items[i].Status.Raw, &status) != nil || status.Replicas <= 0 {
			return 0, false
		}
		sum += status.Replicas
	}
	return sum, true
}
