package policy

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func changedDeployment(change func(object *unstructured.Unstructured)) *unstructured.Unstructured {
	object := newDeployment("shop", "web", map[string]string{"app": "web"})
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

func TestRelevantAndUserChanges(t *testing.T) {
	tests := map[string]struct {
		change     func(*unstructured.Unstructured)
		relevant   bool
		userChange bool
	}{
		"no change":                             {change: func(*unstructured.Unstructured) {}},
		"status":                                {change: setNested(int64(1), "status", "replicas")},
		"resourceVersion":                       {change: setNested("7", "metadata", "resourceVersion")},
		"managedFields":                         {change: setNested([]any{map[string]any{"manager": "m"}}, "metadata", "managedFields")},
		"generation":                            {change: setNested(int64(2), "metadata", "generation"), relevant: true},
		"spec":                                  {change: setNested(int64(2), "spec", "replicas"), relevant: true, userChange: true},
		"a label of the user":                   {change: setNested("y", "metadata", "labels", "x"), relevant: true, userChange: true},
		"an annotation of the user":             {change: setNested("y", "metadata", "annotations", "x"), relevant: true, userChange: true},
		"a finalizer":                           {change: setNested([]any{"f"}, "metadata", "finalizers"), relevant: true, userChange: true},
		"deletion":                              {change: setNested("2024-01-01T00:00:00Z", "metadata", "deletionTimestamp"), relevant: true, userChange: true},
		"a label of the control plane":          {change: setNested("y", "metadata", "labels", "propagationpolicy.karmada.io/permanent-id"), relevant: true},
		"an annotation of the control plane":    {change: setNested("y", "metadata", "annotations", "propagationpolicy.karmada.io/name"), relevant: true},
		"skip-auto-propagation is set by users": {change: setNested("true", "metadata", "labels", "namespace.karmada.io/skip-auto-propagation"), relevant: true, userChange: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := changedDeployment(func(*unstructured.Unstructured) {}), changedDeployment(test.change)
			pristine := after.DeepCopy()
			if got := HasRelevantChange(before, after); got != test.relevant {
				t.Errorf("RelevantChange = %v, want %v", got, test.relevant)
			}
			if got := HasUserChange(before, after); got != test.userChange {
				t.Errorf("UserChange = %v, want %v", got, test.userChange)
			}
			if got := userHash(t, before) != userHash(t, after); got != test.userChange {
				t.Errorf("UserHash differs = %v, want %v", got, test.userChange)
			}
			if HasRelevantChange(pristine, after) || len(pristine.GetLabels()) != len(after.GetLabels()) {
				t.Error("the comparison changed the object")
			}
		})
	}
}

func userHash(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	hash, err := UserHash(object)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}
