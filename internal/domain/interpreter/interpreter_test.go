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

type fixed map[schema.GroupVersionKind]Rules

func (f fixed) Rules(gvk schema.GroupVersionKind) Rules { return f[gvk] }

// full offers every operation and answers with errors that tell who was asked.
func full(who string) Rules {
	asked := errors.New(who)
	return Rules{
		Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
			return 0, nil, asked
		},
		Components: func(context.Context, *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
			return nil, asked
		},
		Revise: func(context.Context, *unstructured.Unstructured, int64) (*unstructured.Unstructured, error) {
			return nil, asked
		},
		Retain: func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return nil, asked
		},
		Aggregate: func(context.Context, *unstructured.Unstructured, []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			return nil, asked
		},
		Status:  func(context.Context, *unstructured.Unstructured) (*runtime.RawExtension, error) { return nil, asked },
		Healthy: func(context.Context, *unstructured.Unstructured) (bool, error) { return false, asked },
		Dependencies: func(context.Context, *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
			return nil, asked
		},
	}
}

// answers calls every operation and returns who answered, "" for not offered.
func answers(t *testing.T, rules Rules) map[string]string {
	t.Helper()
	ctx, object := t.Context(), &unstructured.Unstructured{}
	got := map[string]string{}
	note := func(operation string, err error) {
		if err != nil {
			got[operation] = err.Error()
		}
	}
	if rules.Replicas != nil {
		_, _, err := rules.Replicas(ctx, object)
		note("replicas", err)
	}
	if rules.Components != nil {
		_, err := rules.Components(ctx, object)
		note("components", err)
	}
	if rules.Revise != nil {
		_, err := rules.Revise(ctx, object, 1)
		note("revise", err)
	}
	if rules.Retain != nil {
		_, err := rules.Retain(ctx, object, object)
		note("retain", err)
	}
	if rules.Aggregate != nil {
		_, err := rules.Aggregate(ctx, object, nil)
		note("aggregate", err)
	}
	if rules.Status != nil {
		_, err := rules.Status(ctx, object)
		note("status", err)
	}
	if rules.Healthy != nil {
		_, err := rules.Healthy(ctx, object)
		note("healthy", err)
	}
	if rules.Dependencies != nil {
		_, err := rules.Dependencies(ctx, object)
		note("dependencies", err)
	}
	return got
}

func everything(who string) map[string]string {
	return map[string]string{
		"replicas": who, "components": who, "revise": who, "retain": who,
		"aggregate": who, "status": who, "healthy": who, "dependencies": who,
	}
}

func TestChain(t *testing.T) {
	onlyHealth := Rules{Healthy: full("first").Healthy}
	mixed := everything("second")
	mixed["healthy"] = "first"
	tests := map[string]struct {
		sources []Source
		want    map[string]string
	}{
		"the first source that offers an operation answers, with its error": {
			sources: []Source{fixed{deployment: full("first")}, fixed{deployment: full("second")}},
			want:    everything("first"),
		},
		"precedence is decided for each operation": {
			sources: []Source{fixed{deployment: onlyHealth}, fixed{deployment: full("second")}},
			want:    mixed,
		},
		"another version of the kind is another kind": {
			sources: []Source{fixed{{Group: "apps", Version: "v1beta1", Kind: "Deployment"}: full("beta")}},
			want:    map[string]string{},
		},
		"a chain in a chain is a source like any other": {
			sources: []Source{Chain(fixed{deployment: full("inner")}), fixed{deployment: full("outer")}},
			want:    everything("inner"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, answers(t, Chain(test.sources...).Rules(deployment))); diff != "" {
				t.Errorf("answers differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusIsOfferedForEveryKind(t *testing.T) {
	tests := map[string]struct {
		object  map[string]any
		want    string
		wantErr bool
	}{
		"the whole status is collected":       {object: map[string]any{"status": map[string]any{"a": int64(0), "b": "c"}}, want: `{"a":0,"b":"c"}`},
		"no status is nothing to collect":     {object: map[string]any{"spec": map[string]any{}}},
		"a null status is nothing to collect": {object: map[string]any{"status": nil}},
		"an empty status is collected":        {object: map[string]any{"status": map[string]any{}}, want: `{}`},
		"a status must be an object":          {object: map[string]any{"status": "fine"}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rules := Chain().Rules(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"})
			got, err := rules.Status(t.Context(), &unstructured.Unstructured{Object: test.object})
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

func TestDependenciesAreChecked(t *testing.T) {
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
		"a selector is valid even beside a name": {reference: reference{APIVersion: "v1", Kind: "Secret", Name: "b", LabelSelector: invalidSelector()}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answer := []reference{good, test.reference}
			source := fixed{deployment: Rules{Dependencies: func(context.Context, *unstructured.Unstructured) ([]reference, error) {
				return answer, nil
			}}}
			got, err := Chain(source).Rules(deployment).Dependencies(t.Context(), &unstructured.Unstructured{})
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error %v", err, test.wantErr)
			}
			if test.wantErr {
				answer = nil // one bad reference spoils the answer
			}
			if diff := cmp.Diff(answer, got); diff != "" {
				t.Errorf("dependencies differ (-want +got):\n%s", diff)
			}
		})
	}
}

func invalidSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Likes"}}}
}

func TestNotFoundNamesOperationAndKind(t *testing.T) {
	got := NotFound(configv1alpha1.InterpreterOperationRetain, deployment).Error()
	if want := "Retain interpreter for apps/v1, Kind=Deployment not found"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
}
