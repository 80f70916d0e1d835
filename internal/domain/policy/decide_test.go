package policy

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func claimed(by Object) *unstructured.Unstructured {
	template := deployment("shop", "web", map[string]string{"app": "web"})
	ClaimOf(by).Apply(template)
	return template
}

func TestDecide(t *testing.T) {
	web := policyOf("shop", "web", selecting(namedWeb))
	better := policyOf("shop", "better", priority(9), selecting(namedWeb))
	all := policyOf("", "all", selecting(allDeployments))
	reborn := policyOf("shop", "web", selecting(namedWeb))
	reborn.SetLabels(map[string]string{ppID: "new"})
	noID := policyOf("shop", "web", selecting(namedWeb))
	noID.SetLabels(nil)
	ofController := deployment("shop", "web", map[string]string{"resourcetemplate.karmada.io/claimed-by": "MultiClusterService"})
	foreign := policyOf("other", "web", selecting(allDeployments))

	tests := map[string]struct {
		template *unstructured.Unstructured
		policies []Object
		want     Decision
		err      error
	}{
		"a template that is gone is forgotten":                   {policies: []Object{web}, want: Ignore{}},
		"a template of a controller is not matched":              {template: ofController, policies: []Object{web}, want: Ignore{}},
		"the best policy is applied":                             {template: deployment("shop", "web", nil), policies: []Object{all, web, better}, want: Apply{better}},
		"a cluster policy is applied when no other matches":      {template: deployment("shop", "db", nil), policies: []Object{all, web}, want: Apply{all}},
		"without a policy the template waits":                    {template: deployment("shop", "db", nil), policies: []Object{web}, want: Wait{}},
		"a claimed template stays though a better policy came":   {template: claimed(web), policies: []Object{web, better}, want: Apply{web}},
		"a template claimed by a cluster policy stays with it":   {template: claimed(all), policies: []Object{all, web}, want: Apply{all}},
		"a policy created anew takes over by name":               {template: claimed(web), policies: []Object{reborn}, want: Apply{reborn}},
		"a claim of a policy that is gone is released":           {template: claimed(web), policies: []Object{all}, want: Release{ClaimOf(web)}},
		"a claim of a policy that matches no longer is released": {template: claimed(policyOf("shop", "l")), policies: []Object{policyOf("shop", "l", selecting(labelledOther)), web}, want: Release{Claim{Namespace: "shop", Name: "l", ID: "id-l"}}},
		"a claim copied from another namespace is released":      {template: claimed(foreign), policies: []Object{foreign}, want: Release{ClaimOf(foreign)}},
		"a claim of a policy that is being deleted is retried":   {template: claimed(web), policies: []Object{policyOf("shop", "web", terminating, selecting(namedWeb))}, err: ErrTerminating},
		"a policy without permanent id cannot claim":             {template: deployment("shop", "web", nil), policies: []Object{noID}, err: ErrNoPermanentID},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			index := NewIndex()
			for _, p := range test.policies {
				index.Put(p)
			}
			got := Decide(test.template, index)
			if retry, ok := got.(Retry); ok || test.err != nil {
				if !errors.Is(retry.Err, test.err) {
					t.Errorf("Decide = %v, want error %v", got, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckDependentOverrides(t *testing.T) {
	policy := policyOf("shop", "web")
	policy.PropagationSpec().DependentOverrides = []string{"a", "b", "c"}
	exists := func(n types.NamespacedName) bool { return n == types.NamespacedName{Namespace: "shop", Name: "b"} }
	err := CheckDependentOverrides(policy, exists)
	var missing *MissingOverridesError
	if !errors.As(err, &missing) {
		t.Fatalf("err = %v, want a MissingOverridesError", err)
	}
	if diff := cmp.Diff([]string{"a", "c"}, missing.Names); diff != "" {
		t.Errorf("missing overrides differ (-want +got):\n%s", diff)
	}
	if err := CheckDependentOverrides(policy, func(types.NamespacedName) bool { return true }); err != nil {
		t.Errorf("all overrides exist, but: %v", err)
	}
}

func TestActivate(t *testing.T) {
	policy := policyOf("shop", "web", lazy, selecting(namedWeb))
	template := deployment("shop", "web", map[string]string{"app": "web"})
	state := hashOf(t, template)
	withState := func(state string) *unstructured.Unstructured {
		object := deployment("shop", "web", map[string]string{"app": "web"})
		object.SetAnnotations(map[string]string{UserStateAnnotation: state})
		return object
	}
	eager := policyOf("shop", "web", selecting(namedWeb))
	tests := map[string]struct {
		policy   Object
		template *unstructured.Unstructured
		binding  *unstructured.Unstructured
		cause    Cause
		deferred bool
	}{
		"a policy that is not lazy acts on its own change":          {policy: eager, template: template, cause: PolicyChanged},
		"a template created after the policy is propagated":         {policy: policy, template: template, cause: TemplateChanged},
		"a template that waited for the policy is only claimed":     {policy: policy, template: template, cause: PolicyChanged, deferred: true},
		"a claimed template stays as it is over a restart":          {policy: policy, template: withState(state), cause: TemplateChanged, deferred: true},
		"a claimed template is propagated when its user changes it": {policy: policy, template: withState("before"), cause: TemplateChanged},
		"a change of the policy leaves the binding":                 {policy: policy, template: template, binding: withState(state), cause: PolicyChanged, deferred: true},
		"a restart leaves the binding":                              {policy: policy, template: template, binding: withState(state), cause: TemplateChanged, deferred: true},
		"a user's change rebuilds the binding":                      {policy: policy, template: template, binding: withState("before"), cause: TemplateChanged},
		"a user's change is not lost to a change of the policy":     {policy: policy, template: template, binding: withState("before"), cause: PolicyChanged},
		"a binding without a record waits for the user":             {policy: policy, template: withState(state), binding: template, cause: PolicyChanged, deferred: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Activate(test.policy, test.template, orNoBinding(test.binding), test.cause)
			if err != nil {
				t.Fatal(err)
			}
			if got.Deferred != test.deferred {
				t.Errorf("Deferred = %v, want %v", got.Deferred, test.deferred)
			}
			if wantState := test.policy == policy; (got.UserState == state) != wantState {
				t.Errorf("UserState = %q, want it: %v", got.UserState, wantState)
			}
		})
	}
}

func TestPreempts(t *testing.T) {
	pp := func(name string, p int32) Object { return policyOf("shop", name, priority(p)) }
	cp := func(name string, p int32) Object { return policyOf("", name, priority(p)) }
	tests := map[string]struct {
		preemptor, claimant Object
		unreadable          bool
		want, err           bool
	}{
		"higher PropagationPolicy over lower one":      {preemptor: pp("a", 2), claimant: pp("b", 1), want: true},
		"equal PropagationPolicies":                    {preemptor: pp("a", 1), claimant: pp("b", 1)},
		"lower PropagationPolicy over higher one":      {preemptor: pp("a", 0), claimant: pp("b", 1)},
		"PropagationPolicy over any cluster policy":    {preemptor: pp("a", -5), claimant: cp("b", 100), want: true},
		"cluster policy over any PropagationPolicy":    {preemptor: cp("a", 100), claimant: pp("b", -5)},
		"higher cluster policy over lower one":         {preemptor: cp("a", 2), claimant: cp("b", 1), want: true},
		"lower cluster policy over higher one":         {preemptor: cp("a", 1), claimant: cp("b", 2)},
		"a policy over itself":                         {preemptor: pp("a", 2), claimant: pp("a", 1)},
		"nobody's template":                            {preemptor: pp("a", 2)},
		"a claimant that cannot be read":               {preemptor: pp("a", 2), claimant: pp("b", 1), unreadable: true, err: true},
		"an unreadable cluster policy does not matter": {preemptor: pp("a", 2), claimant: cp("b", 1), unreadable: true, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var claim Claim
			if test.claimant != nil {
				claim = ClaimOf(test.claimant)
			}
			if test.unreadable {
				test.claimant = nil
			}
			got, err := Preempts(test.preemptor, claim, test.claimant)
			if got != test.want || (err != nil) != test.err {
				t.Errorf("Preempts = %v, %v; want %v, error %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestOvertakersAreThoseBetweenOldAndNewPriority(t *testing.T) {
	candidates := []Object{
		policyOf("shop", "at-new", priority(1), preempting),
		policyOf("shop", "low", priority(2), preempting),
		policyOf("shop", "high", priority(4), preempting),
		policyOf("shop", "high-too", priority(4), preempting),
		policyOf("shop", "meek", priority(3)),
		policyOf("shop", "going", priority(3), preempting, terminating),
		policyOf("shop", "at-old", priority(5), preempting),
		policyOf("shop", "none", preempting),
	}
	var got []string
	for _, p := range Overtakers(5, 1, candidates) {
		got = append(got, p.GetName())
	}
	if diff := cmp.Diff([]string{"high", "high-too", "low"}, got); diff != "" {
		t.Errorf("overtakers differ (-want +got):\n%s", diff)
	}
}

func preempting(p Object) { p.PropagationSpec().Preemption = "Always" }

// orNoBinding keeps a nil pointer from becoming a non-nil interface.
func orNoBinding(binding *unstructured.Unstructured) metav1.Object {
	if binding == nil {
		return nil
	}
	return binding
}
