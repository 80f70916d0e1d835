package policy

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func changed(change func(object *unstructured.Unstructured)) *unstructured.Unstructured {
	object := deployment("shop", "web", map[string]string{"app": "web"})
	change(object)
	return object
}

func setNested(value any, fields ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(object.Object, value, fields...); err != nil {
			panic(err)
		}
	}
}

func TestChanges(t *testing.T) {
	tests := map[string]struct {
		change   func(*unstructured.Unstructured)
		relevant bool
		user     bool
	}{
		"nothing":                             {change: func(*unstructured.Unstructured) {}},
		"status":                              {change: setNested(int64(1), "status", "replicas")},
		"resourceVersion":                     {change: setNested("7", "metadata", "resourceVersion")},
		"managedFields":                       {change: setNested([]any{map[string]any{"manager": "m"}}, "metadata", "managedFields")},
		"generation":                          {change: setNested(int64(2), "metadata", "generation"), relevant: true},
		"spec":                                {change: setNested(int64(2), "spec", "replicas"), relevant: true, user: true},
		"a label of the user":                 {change: setNested("y", "metadata", "labels", "x"), relevant: true, user: true},
		"an annotation of the user":           {change: setNested("y", "metadata", "annotations", "x"), relevant: true, user: true},
		"a finalizer":                         {change: setNested([]any{"f"}, "metadata", "finalizers"), relevant: true, user: true},
		"deletion":                            {change: setNested("2024-01-01T00:00:00Z", "metadata", "deletionTimestamp"), relevant: true, user: true},
		"a label of the control plane":        {change: setNested("y", "metadata", "labels", "propagationpolicy.karmada.io/permanent-id"), relevant: true},
		"an annotation of ours, the first":    {change: setNested("y", "metadata", "annotations", "propagationpolicy.karmada.io/name"), relevant: true},
		"skip-auto-propagation is the user's": {change: setNested("true", "metadata", "labels", "namespace.karmada.io/skip-auto-propagation"), relevant: true, user: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := changed(func(*unstructured.Unstructured) {}), changed(test.change)
			pristine := after.DeepCopy()
			if got := RelevantChange(before, after); got != test.relevant {
				t.Errorf("RelevantChange = %v, want %v", got, test.relevant)
			}
			if got := UserChange(before, after); got != test.user {
				t.Errorf("UserChange = %v, want %v", got, test.user)
			}
			if got := hashOf(t, before) != hashOf(t, after); got != test.user {
				t.Errorf("UserHash differs = %v, want %v", got, test.user)
			}
			if RelevantChange(pristine, after) || len(pristine.GetLabels()) != len(after.GetLabels()) {
				t.Error("asking has changed the object")
			}
		})
	}
}

func hashOf(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	hash, err := UserHash(object)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}
