package podfailure

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// FromStatus returns the failure in a reflected status. ok is false if the status contains no
// failure or cannot be parsed.
func FromStatus(status *runtime.RawExtension) (failure Failure, ok bool) {
	if status == nil {
		return failure, false
	}
	var read struct {
		Conditions []struct {
			Type    string `json:"type"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
	}
	if err := json.Unmarshal(status.Raw, &read); err != nil {
		return failure, false
	}
	for _, c := range read.Conditions {
		if c.Type == workv1alpha2.MemberConditionPodFailure {
			return Failure{Reason: c.Reason, Message: c.Message}, true
		}
	}
	return failure, false
}

// AddTo returns the reflected status with an additional condition for the failure. It returns nil
// for a workload without a status.
func (f Failure) AddTo(status *runtime.RawExtension) (*runtime.RawExtension, error) {
	if status == nil {
		return nil, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(status.Raw, &fields); err != nil || fields == nil {
		return status, err
	}
	list, _ := fields["conditions"].([]any)
	fields["conditions"] = append(list, map[string]any{
		"type": workv1alpha2.MemberConditionPodFailure, "status": "True", "reason": f.Reason, "message": f.Message,
	})
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}
