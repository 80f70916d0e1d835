package interpreter

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReflectWholeStatus returns the member object's complete status, or nil if it has none. It is the
// default for kinds without a rule.
func ReflectWholeStatus(_ context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error) {
	status, found, err := unstructured.NestedFieldNoCopy(memberObject.Object, "status")
	if err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	if !found || status == nil {
		return nil, nil
	}
	if _, isObject := status.(map[string]any); !isObject {
		return nil, fmt.Errorf("reading the status: it is a %T, not an object", status)
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}
