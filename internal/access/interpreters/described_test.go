package interpreters

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

func TestSourcesAreDescribedInTheirOrder(t *testing.T) {
	fleets := schema.GroupVersionKind{Group: "games.example.io", Version: "v1", Kind: "Fleet"}
	rules := newInterpreter(t, Options{})
	rules.customized.setAll([]*configv1alpha1.ResourceInterpreterCustomization{customizationOf("fleet", fleets, 3)})
	tests := map[string]struct {
		kind schema.GroupVersionKind
		want string
	}{
		"a kind with a customization": {fleets, "ResourceInterpreterCustomization fleet"},
		"a shipped kind":              {schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}, "the rules that Karmada ships for kinds of other projects"},
		"a built-in kind":             {appsv1.SchemeGroupVersion.WithKind("Deployment"), "the built-in rules"},
		"an unknown kind":             {kind: schema.GroupVersionKind{Version: "v1", Kind: "Unknown"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got string
			for _, source := range rules.Sources() {
				if source.Rules(test.kind).Replicas != nil {
					got = source.Describe(test.kind, configv1alpha1.InterpreterOperationInterpretReplica)
					break
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("source (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewCustomizedHasNoOtherRules(t *testing.T) {
	fleets := schema.GroupVersionKind{Group: "games.example.io", Version: "v1", Kind: "Fleet"}
	rules, err := NewCustomized(Options{}, []*configv1alpha1.ResourceInterpreterCustomization{customizationOf("fleet", fleets, 3)})
	if err != nil {
		t.Fatal(err)
	}
	if rules.Rules(fleets).Replicas == nil {
		t.Error("the rule of the customization is missing")
	}
	if rules.Rules(appsv1.SchemeGroupVersion.WithKind("Deployment")).Replicas != nil {
		t.Error("there are built-in rules")
	}
}
