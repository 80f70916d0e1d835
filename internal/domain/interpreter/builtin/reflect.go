package builtin

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/jsonedit"
)

type statusRule = func(context.Context, *unstructured.Unstructured) (*runtime.RawExtension, error)

// reflectFields returns the rule that reflects the given fields of the status. Zero values are
// omitted. If all fields are zero, the rule reflects no status.
func reflectFields(fields ...string) statusRule {
	return func(_ context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error) {
		picked, err := nonZeroStatusFields(memberObject, fields)
		if err != nil || len(picked) == 0 {
			return nil, err
		}
		return encodeStatus(picked)
	}
}

// reflectWorkload returns the rule that reflects the status of workloads of apps/v1. The rule
// reflects the counters, observedGeneration, and the generations of the member object and of the
// template. The generations show to which revision of the template the status belongs. The rule
// also reflects conditions of the given types, without values that change often. A status with zero
// values only is not reflected, because its controller has not written it yet.
func reflectWorkload(counters []string, conditionTypes ...string) statusRule {
	fields := appendField(counters, observedGeneration)
	return func(_ context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error) {
		picked, err := nonZeroStatusFields(memberObject, fields)
		if err != nil || len(picked) == 0 {
			return nil, err
		}
		if generation := memberObject.GetGeneration(); generation != 0 {
			picked["generation"] = generation
		}
		if generation := templateGeneration(memberObject); generation != 0 {
			picked["resourceTemplateGeneration"] = generation
		}
		if conditions := reflectConditions(memberObject, conditionTypes); len(conditions) > 0 {
			picked["conditions"] = conditions
		}
		return encodeStatus(picked)
	}
}

// templateGeneration returns the generation of the template from which a member object was created.
// If the annotation is missing or invalid, for instance on adopted objects, it returns 0, which is
// older than any generation.
func templateGeneration(memberObject *unstructured.Unstructured) int64 {
	annotation, _, _ := unstructured.NestedFieldNoCopy(memberObject.Object,
		"metadata", "annotations", workv1alpha2.ResourceTemplateGenerationAnnotation)
	value, _ := annotation.(string)
	generation, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

// nonZeroStatusFields returns the given fields of the status that are not zero.
func nonZeroStatusFields(memberObject *unstructured.Unstructured, fields []string) (map[string]any, error) {
	status, err := nested[map[string]any](memberObject.Object, "status")
	if err != nil {
		return nil, err
	}
	picked := make(map[string]any, len(fields)+2)
	for _, field := range fields {
		if value := status[field]; !isZero(value) {
			picked[field] = value
		}
	}
	return picked, nil
}

func isZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case int64:
		return v == 0
	case float64:
		return v == 0
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func encodeStatus(status map[string]any) (*runtime.RawExtension, error) {
	raw, err := jsonedit.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}
