package builtin

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// Types, statuses and reasons of conditions of workloads that members write.
const (
	availableType      = "Available"
	progressingType    = "Progressing"
	replicaFailureType = "ReplicaFailure"

	conditionTrue    = "True"
	conditionFalse   = "False"
	conditionUnknown = "Unknown"

	minimumAvailableReason   = "MinimumReplicasAvailable"
	minimumUnavailableReason = "MinimumReplicasUnavailable"
	rolledOutReason          = "NewReplicaSetAvailable"
	deadlineExceededReason   = "ProgressDeadlineExceeded"
)

// causeBytes is the maximum length of the message of a condition from a member.
const causeBytes = 256

// reportedCondition is the reflected part of a condition of a member. It has no times, and it has a
// message only if the condition indicates a problem. Other messages are omitted, because they
// change with every step of a rollout and every change causes a write.
type reportedCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// isProblem reports whether a condition indicates a problem.
func (r reportedCondition) isProblem() bool {
	switch r.Type {
	case replicaFailureType, workv1alpha2.MemberConditionPodFailure:
		return r.Status == conditionTrue
	default:
		return r.Status == conditionFalse
	}
}

// cause returns the message of the condition. Without a message it returns the reason, and without
// a reason the type and status.
func (r reportedCondition) cause() string { return cmp.Or(r.Message, r.Reason, r.Type+" is "+r.Status) }

// reflectConditions returns the conditions of a member object that have one of the given types, in
// the order of types. It returns nil if there are none. Invalid conditions are omitted, because the
// controller of the kind did not write them.
func reflectConditions(memberObject *unstructured.Unstructured, types []string) []any {
	list, _, _ := unstructured.NestedFieldNoCopy(memberObject.Object, "status", "conditions")
	entries, _ := list.([]any)
	var picked []any
	for _, kind := range types {
		index := slices.IndexFunc(entries, func(entry any) bool { return entryText(entry, "type") == kind })
		if index < 0 {
			continue
		}
		condition := reportedCondition{
			Type: kind, Status: entryText(entries[index], "status"), Reason: entryText(entries[index], "reason"),
		}
		if condition.Status == "" {
			continue
		}
		if condition.isProblem() {
			condition.Message = conditions.Truncate(entryText(entries[index], "message"), causeBytes)
		}
		picked = append(picked, condition.encode())
	}
	return picked
}

func (r reportedCondition) encode() map[string]any {
	encoded := map[string]any{"type": r.Type, "status": r.Status}
	for field, value := range map[string]string{"reason": r.Reason, "message": r.Message} {
		if value != "" {
			encoded[field] = value
		}
	}
	return encoded
}
