package interpreters

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

var deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")

// fixedReplicas returns rules that interpret each template as having n replicas.
func fixedReplicas(n int32) interpreter.Rules {
	return interpreter.Rules{Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
		return n, nil, nil
	}}
}

func newDeployment() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"replicas": int64(2), "template": map[string]any{"spec": map[string]any{
			"priorityClassName": "gold",
			"containers":        []any{map[string]any{"name": "web", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}},
		}}},
	}}
}

func TestPriorityClassRequiresTheGate(t *testing.T) {
	tests := map[string]struct {
		options Options
		want    string
	}{
		"without the gate, requirements have no priority class": {},
		"with the gate, requirements have the priority class":   {Options{ResourceQuotaEstimate: true}, "gold"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, requirements, err := newInterpreter(t, test.options).Rules(deployments).Replicas(t.Context(), newDeployment())
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if requirements != nil {
				got = requirements.PriorityClassName
			}
			if got != test.want {
				t.Errorf("priority class %q, want %q", got, test.want)
			}
		})
	}
}

func newInterpreter(t *testing.T, o Options) *Interpreter {
	t.Helper()
	rules, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// customizationOf returns a customization with a script that returns a number of replicas.
func customizationOf(name string, kind schema.GroupVersionKind, replicas int) *configv1alpha1.ResourceInterpreterCustomization {
	apiVersion, kindName := kind.ToAPIVersionAndKind()
	return &configv1alpha1.ResourceInterpreterCustomization{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{
			Target: configv1alpha1.CustomizationTarget{APIVersion: apiVersion, Kind: kindName},
			Customizations: configv1alpha1.CustomizationRules{ReplicaResource: &configv1alpha1.ReplicaResourceRequirement{
				LuaScript: fmt.Sprintf("function GetReplicas(desiredObj) return %d, nil end", replicas),
			}},
		},
	}
}

func TestCustomizationsHavePrecedenceOverBuiltInRules(t *testing.T) {
	rules := newInterpreter(t, Options{})
	load := func(customizations ...client.Object) {
		t.Helper()
		if err := rules.Load(t.Context(), fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(customizations...).Build()); err != nil {
			t.Fatal(err)
		}
	}
	var got []int32
	check := func() {
		t.Helper()
		replicas, _, err := rules.Rules(deployments).Replicas(t.Context(), newDeployment())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, replicas)
	}
	other := schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}
	check()
	load(customizationOf("web", deployments, 7))
	check()
	if rules.Rules(deployments).AggregateStatus == nil {
		t.Error("an operation without a script has lost its built-in rule")
	}
	load(customizationOf("web", deployments, 7), customizationOf("other", other, 9))
	check()
	load(customizationOf("other", other, 9))
	check()
	if diff := cmp.Diff([]int32{2, 7, 7, 2}, got); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
}

func TestOnlyKindsWithChangedScriptsAreAnnounced(t *testing.T) {
	rules := newInterpreter(t, Options{})
	var announced []string
	stop := rules.OnChange(func(kinds interpreter.Kinds) { announced = append(announced, namesOf(kinds)) })
	defer stop()
	a, b := customizationOf("a", kindNamed("A"), 1), customizationOf("b", kindNamed("B"), 1)
	changed := customizationOf("a", kindNamed("A"), 2)
	steps := []struct {
		name           string
		customizations []*configv1alpha1.ResourceInterpreterCustomization
		want           []string
	}{
		{"a new customization", []*configv1alpha1.ResourceInterpreterCustomization{a}, []string{"A"}},
		{"nothing changed", []*configv1alpha1.ResourceInterpreterCustomization{a}, nil},
		{"another kind", []*configv1alpha1.ResourceInterpreterCustomization{b, a}, []string{"B"}},
		{"a changed script", []*configv1alpha1.ResourceInterpreterCustomization{changed, b}, []string{"A"}},
		{"a second customization without effect", []*configv1alpha1.ResourceInterpreterCustomization{changed, b, customizationOf("c", kindNamed("B"), 3)}, nil},
		{"a removed customization", []*configv1alpha1.ResourceInterpreterCustomization{b}, []string{"A"}},
	}
	for _, step := range steps {
		announced = nil
		rules.customized.setAll(step.customizations)
		if diff := cmp.Diff(step.want, announced); diff != "" {
			t.Errorf("%s: announced kinds (-want +got):\n%s", step.name, diff)
		}
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := configv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// A user writes the quantities of these objects, and no API server validates them.
func TestHostileQuantitiesAreErrors(t *testing.T) {
	flink := func(memory string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment", "metadata": map[string]any{"name": "count", "namespace": "shop"},
			"spec": map[string]any{
				"jobManager":  map[string]any{"resource": map[string]any{"cpu": int64(1), "memory": memory}},
				"taskManager": map[string]any{"resource": map[string]any{"cpu": int64(1), "memory": "1Gi"}},
			},
		}}
	}
	tests := map[string]struct{ memory, want string }{
		"a quantity":                     {memory: "2Gi"},
		"an exponent that takes forever": {"1e-2147483648", "quantity"},
		"an exponent that panics":        {"1e2147483647", "quantity"},
		"a negative quantity":            {"-1Gi", "quantity"},
		"no quantity":                    {"much", "quantit"},
	}
	rules := newInterpreter(t, Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := flink(test.memory)
			kind := rules.Rules(object.GroupVersionKind())
			_, _, replicasErr := kind.Replicas(t.Context(), object)
			_, componentsErr := kind.Components(t.Context(), object)
			for operation, err := range map[string]error{"Replicas": replicasErr, "Components": componentsErr} {
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: err = %v, want %q", operation, err, test.want)
				}
			}
		})
	}
}
