package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

func TestRelevantPolicyChanges(t *testing.T) {
	tests := map[string]struct {
		change func(Object)
		want   bool
	}{
		"not one without another spec": {func(p Object) { p.SetAnnotations(map[string]string{"a": "b"}) }, false},
		"another spec":                 {func(p Object) { p.SetGeneration(p.GetGeneration() + 1) }, true},
		"its deletion":                 {withDeletionTimestamp, true},
		"the first permanent ID":       {func(p Object) { p.SetLabels(map[string]string{PermanentIDLabel(p): "new"}) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := HasRelevantPolicyChange(newPolicy("shop", "p"), newPolicy("shop", "p", test.change)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestCauseOfUpdate(t *testing.T) {
	lazy, eager := newPolicy("shop", "lazy", withLazyActivation), newPolicy("shop", "eager")
	claimed := func(by Object, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		object := changedDeployment(change)
		ClaimOf(by).Apply(object)
		return object
	}
	unchanged, scaled := func(*unstructured.Unstructured) {}, setNested(int64(7), "spec", "replicas")
	tests := map[string]struct {
		before, after *unstructured.Unstructured
		want          Trigger
	}{
		"a change by a user":                         {claimed(lazy, unchanged), claimed(lazy, scaled), TemplateChanged},
		"the first claim":                            {changedDeployment(unchanged), claimed(lazy, unchanged), TemplateChanged},
		"a release":                                  {claimed(lazy, unchanged), changedDeployment(unchanged), TemplateChanged},
		"a policy that is not Lazy takes over":       {claimed(lazy, unchanged), claimed(eager, unchanged), TemplateChanged},
		"a Lazy policy takes over":                   {claimed(eager, unchanged), claimed(lazy, unchanged), PolicyChanged},
		"a Lazy policy and a change by a user":       {claimed(eager, unchanged), claimed(lazy, scaled), TemplateChanged},
		"a policy that does not exist any more":      {claimed(eager, unchanged), claimed(newPolicy("shop", "other"), unchanged), TemplateChanged},
		"a Lazy policy that the template had before": {claimed(lazy, unchanged), claimed(lazy, unchanged), TemplateChanged},
	}
	get := func(namespace, name string) Object {
		for _, p := range []Object{lazy, eager} {
			if p.GetNamespace() == namespace && p.GetName() == name {
				return p
			}
		}
		return nil
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CauseOfUpdate(test.before, test.after, get); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestPassesThatAreRecorded(t *testing.T) {
	p, other := newPolicy("shop", "p"), newPolicy("shop", "other")
	template := newDeployment("shop", "web", nil)
	claimedTemplate := template.DeepCopy()
	ClaimOf(p).Apply(claimedTemplate)
	boundBy := func(by Object) binding.Object {
		bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
		ClaimOf(by).Apply(bound)
		return bound
	}
	const title = "PropagationPolicy shop/p"
	tests := map[string]struct {
		before       *unstructured.Unstructured
		bound        binding.Object
		cause        Trigger
		apply        bool
		wantDeferral string
	}{
		"a new template":                       {before: template, apply: true, wantDeferral: "Claimed by " + title + ", which is Lazy: it takes effect at the next change of this object"},
		"the policy replaces another policy":   {before: template, bound: boundBy(other), apply: true, wantDeferral: "Claimed by " + title + ", which is Lazy: it takes effect at the next change of this object"},
		"the policy changed":                   {before: claimedTemplate, bound: boundBy(p), cause: PolicyChanged, apply: true, wantDeferral: title + " changed and is Lazy: it takes effect at the next change of this object"},
		"a claimed template without binding":   {before: claimedTemplate, cause: PolicyChanged, apply: true},
		"the template changed":                 {before: claimedTemplate, bound: boundBy(p)},
		"the binding has the claim of another": {before: claimedTemplate, bound: boundBy(other), apply: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ShouldRecordApply(test.bound, p, test.cause); got != test.apply {
				t.Errorf("the apply is recorded: %v, want %v", got, test.apply)
			}
			message, ok := DescribeDeferral(test.before, test.bound, p, test.cause)
			if message != test.wantDeferral || ok != (test.wantDeferral != "") {
				t.Errorf("deferral %q, %v, want %q", message, ok, test.wantDeferral)
			}
		})
	}
}

func TestSetUserState(t *testing.T) {
	tests := map[string]struct {
		before map[string]string
		state  string
		want   map[string]string
	}{
		"a first state":                   {nil, "a", map[string]string{policyv1alpha1.UserStateAnnotation: "a"}},
		"another state":                   {map[string]string{policyv1alpha1.UserStateAnnotation: "a", "x": "y"}, "b", map[string]string{policyv1alpha1.UserStateAnnotation: "b", "x": "y"}},
		"no state":                        {map[string]string{policyv1alpha1.UserStateAnnotation: "a", "x": "y"}, "", map[string]string{"x": "y"}},
		"no state and no annotation left": {map[string]string{policyv1alpha1.UserStateAnnotation: "a"}, "", nil},
		"no state where there was none":   {nil, "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := newDeployment("shop", "web", nil)
			object.SetAnnotations(test.before)
			SetUserState(object, test.state)
			if diff := cmp.Diff(test.want, object.GetAnnotations()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPriorityClassValue(t *testing.T) {
	tests := map[string]struct {
		value any
		want  int32
	}{
		"a number":   {int64(100), 100},
		"a negative": {int64(-5), -5},
		"no value":   {nil, 0},
		"a text":     {"high", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			class := &unstructured.Unstructured{Object: map[string]any{}}
			if test.value != nil {
				class.Object["value"] = test.value
			}
			if got := PriorityClassValue(class); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
