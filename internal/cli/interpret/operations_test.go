package interpret

import (
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/customization"
)

func TestEveryOperationCanRun(t *testing.T) {
	var got []string
	for _, operation := range operations() {
		got = append(got, string(operation.Name))
	}
	if want := operationNames(); !reflect.DeepEqual(got, want) {
		t.Errorf("operations %v, want %v", got, want)
	}
	if len(runners) != len(customization.Operations()) {
		t.Errorf("%d runners for %d operations", len(runners), len(customization.Operations()))
	}
	if fields := reflect.TypeFor[interpreter.Rules]().NumField(); fields != len(runners) {
		t.Errorf("%d runners for %d rules", len(runners), fields)
	}
}

func TestNoOperationIsSupportedWithoutRules(t *testing.T) {
	for _, operation := range operations() {
		if operation.isSupported(interpreter.Rules{}) {
			t.Errorf("%s is supported without a rule", operation.Name)
		}
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
			results, err := objectResult("revised")(test.object, test.err)
			if (err != nil) != test.fails {
				t.Fatalf("error %v, want an error: %t", err, test.fails)
			}
			if err == nil && (len(results) != 1 || results[0].name != "revised") {
				t.Errorf("results %v", results)
			}
		})
	}
}
