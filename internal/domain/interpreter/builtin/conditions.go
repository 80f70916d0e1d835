package builtin

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// Types, statuses and reasons of conditions of workloads, as members write them.
const (
	available      = "Available"
	progressing    = "Progressing"
	replicaFailure = "ReplicaFailure"

	conditionTrue    = "True"
	conditionFalse   = "False"
	conditionUnknown = "Unknown"

	minimumAvailableReason   = "MinimumReplicasAvailable"
	minimumUnavailableReason = "MinimumReplicasUnavailable"
	rolledOutReason          = "NewReplicaSetAvailable"
	deadlineExceededReason   = "ProgressDeadlineExceeded"
)

// causeBytes bounds the message of a condition that is taken from a member.
const causeBytes = 256

// reportedCondition is what counts of a condition in a member: no time, and a
// message only where it is the cause of a problem. Messages of the other ones
// change at every step of a rollout, and a change is a write.
type reportedCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// isProblem reports whether a condition says that something is wrong.
func (c reportedCondition) isProblem() bool {
	switch c.Type {
	case replicaFailure, workv1alpha2.MemberConditionPodFailure:
		return c.Status == conditionTrue
	default:
		return c.Status == conditionFalse
	}
}

// cause is the message, or the reason where there is none.
func (c reportedCondition) cause() string { return cmp.Or(c.Message, c.Reason, c.Type+" is "+c.Status) }

// pickConditions returns the conditions of the given types of a member object,
// sorted by type; nil when there are none. Conditions that cannot be read are left
// out: they were not written by the controller of the kind.
func pickConditions(memberObject *unstructured.Unstructured, types []string) []any {
	list, _, _ := unstructured.NestedFieldNoCopy(memberObject.Object, "status", "conditions")
	entries, _ := list.([]any)
	var picked []any
	for _, kind := range types {
		at := slices.IndexFunc(entries, func(entry any) bool { return nameOf(entry, "type") == kind })
		if at < 0 {
			continue
		}
		condition := reportedCondition{
			Type: kind, Status: nameOf(entries[at], "status"), Reason: nameOf(entries[at], "reason"),
		}
		if condition.Status == "" {
			continue
		}
		if condition.isProblem() {
			condition.Message = conditions.Shorten(nameOf(entries[at], "message"), causeBytes)
		}
		picked = append(picked, condition.encoded())
	}
	return picked
}

func (c reportedCondition) encoded() map[string]any {
	encoded := map[string]any{"type": c.Type, "status": c.Status}
	for field, value := range map[string]string{"reason": c.Reason, "message": c.Message} {
		if value != "" {
			encoded[field] = value
		}
	}
	return encoded
}
