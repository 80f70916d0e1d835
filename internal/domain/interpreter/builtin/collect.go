package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

type statusRule = func(context.Context, *unstructured.Unstructured) (*runtime.RawExtension, error)

// collect is the rule of kinds of whose status the given fields count. Zero
// values are left out; when nothing remains nothing is collected.
func collect(fields ...string) statusRule {
	return func(_ context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error) {
		picked, err := pick(memberObject, fields)
		if err != nil || len(picked) == 0 {
			return nil, err
		}
		return encode(picked)
	}
}

// collectWorkload is collect for the workloads of apps/v1: the counters, the
// generation that the controller has seen, and the two generations that tell
// which revision of the template the status is about. Conditions of the given
// types go along, without what changes at every step. A status with nothing but
// zeros has not been written by its controller yet and says nothing.
func collectWorkload(counters []string, conditionTypes ...string) statusRule {
	fields := with(counters, observedGeneration)
	return func(_ context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error) {
		picked, err := pick(memberObject, fields)
		if err != nil || len(picked) == 0 {
			return nil, err
		}
		if generation := memberObject.GetGeneration(); generation != 0 {
			picked["generation"] = generation
		}
		if generation := templateGeneration(memberObject); generation != 0 {
			picked["resourceTemplateGeneration"] = generation
		}
		if conditions := pickConditions(memberObject, conditionTypes); len(conditions) > 0 {
			picked["conditions"] = conditions
		}
		return encode(picked)
	}
}

// templateGeneration returns the generation of the template that a member object
// was made of. Objects that bear no readable mark, for instance adopted ones,
// count as made of generation 0: older than any.
func templateGeneration(memberObject *unstructured.Unstructured) int64 {
	annotation, _, _ := unstructured.NestedFieldNoCopy(memberObject.Object,
		"metadata", "annotations", workv1alpha2.ResourceTemplateGenerationAnnotation)
	mark, _ := annotation.(string)
	generation, err := strconv.ParseInt(mark, 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

// pick returns the fields of the status that are not zero.
func pick(memberObject *unstructured.Unstructured, fields []string) (map[string]any, error) {
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

func encode(status map[string]any) (*runtime.RawExtension, error) {
	raw, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}
