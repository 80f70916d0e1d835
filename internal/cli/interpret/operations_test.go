package interpret

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/interpreter"
)

func TestEveryOperationHasARow(t *testing.T) {
	for _, operation := range interpreter.ScriptOperations() {
		row, found := operationRows[operation.Name]
		if !found {
			t.Errorf("%s has no row", operation.Name)
		} else if row.rule(interpreter.Rules{}) != nil {
			t.Errorf("%s is supported without a rule", operation.Name)
		}
	}
	if fields := reflect.TypeFor[interpreter.Rules]().NumField(); fields != len(operationRows) {
		t.Errorf("%d rows for %d rules", len(operationRows), fields)
	}
}

func TestResultOfAnOperationThatReturnsAnObject(t *testing.T) {
	failure := errors.New("failure")
	tests := map[string]struct {
		object *unstructured.Unstructured
		err    error
		fails  bool
	}{
		"an object":               {object: &unstructured.Unstructured{Object: map[string]any{"kind": "Fleet"}}},
		"an error":                {err: failure, fails: true},
		"no object, but no error": {fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rule := func(context.Context, *unstructured.Unstructured, int64) (*unstructured.Unstructured, error) {
				return test.object, test.err
			}
			results, err := reviseObject("revised", rule, func(in inputs) int64 { return in.replicas })(t.Context(), inputs{})
			if (err != nil) != test.fails {
				t.Fatalf("error %v, want an error: %t", err, test.fails)
			}
			if err == nil && (len(results) != 1 || results[0].name != "revised") {
				t.Errorf("results %v", results)
			}
		})
	}
}
