package interpreter

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

var deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

type staticSource map[schema.GroupVersionKind]Rules

func (s staticSource) Rules(gvk schema.GroupVersionKind) Rules { return s[gvk] }

// rulesWithErrors returns rules for every operation. Each rule returns an error that contains the
// name of the source.
func rulesWithErrors(source string) Rules {
	err := errors.New(source)
	return Rules{
		Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
			return 0, nil, err
		},
		Components: func(context.Context, *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
			return nil, err
		},
		ReviseReplicas: func(context.Context, *unstructured.Unstructured, int64) (*unstructured.Unstructured, error) {
			return nil, err
		},
		Retain: func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return nil, err
		},
		AggregateStatus: func(context.Context, *unstructured.Unstructured, []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			return nil, err
		},
		ReflectStatus: func(context.Context, *unstructured.Unstructured) (*runtime.RawExtension, error) { return nil, err },
		IsHealthy:     func(context.Context, *unstructured.Unstructured) (bool, error) { return false, err },
		Dependencies: func(context.Context, *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
			return nil, err
		},
	}
}

// callOperations calls every operation and returns the sources that answered.
func callOperations(t *testing.T, rules Rules) map[string]string {
	t.Helper()
	ctx, object := t.Context(), &unstructured.Unstructured{}
	got := map[string]string{}
	recordError := func(operation string, err error) {
		if err != nil {
			got[operation] = err.Error()
		}
	}
	if rules.Replicas != nil {
		_, _, err := rules.Replicas(ctx, object)
		recordError("replicas", err)
	}
	if rules.Components != nil {
		_, err := rules.Components(ctx, object)
		recordError("components", err)
	}
	if rules.ReviseReplicas != nil {
		_, err := rules.ReviseReplicas(ctx, object, 1)
		recordError("revise", err)
	}
	if rules.Retain != nil {
		_, err := rules.Retain(ctx, object, object)
		recordError("retain", err)
	}
	if rules.AggregateStatus != nil {
		_, err := rules.AggregateStatus(ctx, object, nil)
		recordError("aggregate", err)
	}
	if rules.ReflectStatus != nil {
		_, err := rules.ReflectStatus(ctx, object)
		recordError("status", err)
	}
	if rules.IsHealthy != nil {
		_, err := rules.IsHealthy(ctx, object)
		recordError("healthy", err)
	}
	if rules.Dependencies != nil {
		_, err := rules.Dependencies(ctx, object)
		recordError("dependencies", err)
	}
	return got
}

func allOperations(source string) map[string]string {
	return map[string]string{
		"replicas": source, "components": source, "revise": source, "retain": source,
		"aggregate": source, "status": source, "healthy": source, "dependencies": source,
	}
}

func TestChain(t *testing.T) {
	onlyHealth := Rules{IsHealthy: rulesWithErrors("first").IsHealthy}
	mixed := allOperations("second")
	mixed["healthy"] = "first"
	tests := map[string]struct {
		sources []Source
		want    map[string]string
	}{
		"the first source with a rule is used, with its error": {
			sources: []Source{staticSource{deployment: rulesWithErrors("first")}, staticSource{deployment: rulesWithErrors("second")}},
			want:    allOperations("first"),
		},
		"precedence is separate for each operation": {
			sources: []Source{staticSource{deployment: onlyHealth}, staticSource{deployment: rulesWithErrors("second")}},
			want:    mixed,
		},
		"another version of the kind has no rules": {
			sources: []Source{staticSource{{Group: "apps", Version: "v1beta1", Kind: "Deployment"}: rulesWithErrors("beta")}},
			want:    map[string]string{},
		},
		"an interpreter is a source": {
			sources: []Source{New(staticSource{deployment: rulesWithErrors("inner")}), staticSource{deployment: rulesWithErrors("outer")}},
			want:    allOperations("inner"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, callOperations(t, New(test.sources...).Rules(deployment))); diff != "" {
				t.Errorf("sources differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryKindReflectsStatus(t *testing.T) {
	tests := map[string]struct {
		object  map[string]any
		want    string
		wantErr bool
	}{
		"the whole status is reflected": {object: map[string]any{"status": map[string]any{"a": int64(0), "b": "c"}}, want: `{"a":0,"b":"c"}`},
		"no status":                     {object: map[string]any{"spec": map[string]any{}}},
		"a null status":                 {object: map[string]any{"status": nil}},
		"an empty status is reflected":  {object: map[string]any{"status": map[string]any{}}, want: `{}`},
		"a status must be an object":    {object: map[string]any{"status": "fine"}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rules := New().Rules(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"})
			got, err := rules.ReflectStatus(t.Context(), &unstructured.Unstructured{Object: test.object})
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error %v", err, test.wantErr)
			}
			var text string
			if got != nil {
				text = string(got.Raw)
			}
			if text != test.want {
				t.Errorf("status = %q, want %q", text, test.want)
			}
		})
	}
}

func TestDependenciesAreValidated(t *testing.T) {
	type reference = configv1alpha1.DependentObjectReference
	good := reference{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "b"}
	tests := map[string]struct {
		reference reference
		wantErr   bool
	}{
		"a name is enough":                       {reference: good},
		"a selector is enough":                   {reference: reference{APIVersion: "v1", Kind: "Secret", LabelSelector: &metav1.LabelSelector{}}},
		"apiVersion is required":                 {reference: reference{Kind: "Secret", Name: "b"}, wantErr: true},
		"kind is required":                       {reference: reference{APIVersion: "v1", Name: "b"}, wantErr: true},
		"a name or a selector is required":       {reference: reference{APIVersion: "v1", Kind: "Secret"}, wantErr: true},
		"a selector must be valid":               {reference: reference{APIVersion: "v1", Kind: "Secret", LabelSelector: invalidSelector()}, wantErr: true},
		"a selector beside a name must be valid": {reference: reference{APIVersion: "v1", Kind: "Secret", Name: "b", LabelSelector: invalidSelector()}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result := []reference{good, test.reference}
			source := staticSource{deployment: Rules{Dependencies: func(context.Context, *unstructured.Unstructured) ([]reference, error) {
				return result, nil
			}}}
			got, err := New(source).Rules(deployment).Dependencies(t.Context(), &unstructured.Unstructured{})
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error %v", err, test.wantErr)
			}
			if test.wantErr {
				result = nil // one invalid reference makes the whole result invalid
			}
			if diff := cmp.Diff(result, got); diff != "" {
				t.Errorf("dependencies differ (-want +got):\n%s", diff)
			}
		})
	}
}

func invalidSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Likes"}}}
}

func TestNotFoundError(t *testing.T) {
	got := NewNotFoundError(configv1alpha1.InterpreterOperationRetain, deployment).Error()
	if want := "Retain interpreter for apps/v1, Kind=Deployment not found"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
}
