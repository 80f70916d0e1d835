package policy

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func claimedTemplate(by Object) *unstructured.Unstructured {
	template := newDeployment("shop", "web", map[string]string{"app": "web"})
	ClaimOf(by).Apply(template)
	return template
}

func TestDecide(t *testing.T) {
	web := newPolicy("shop", "web", withSelectors(webByName))
	better := newPolicy("shop", "better", withPriority(9), withSelectors(webByName))
	all := newPolicy("", "all", withSelectors(allDeployments))
	recreated := newPolicy("shop", "web", withSelectors(webByName))
	recreated.SetLabels(map[string]string{ppID: "new"})
	noID := newPolicy("shop", "web", withSelectors(webByName))
	noID.SetLabels(nil)
	ofController := newDeployment("shop", "web", map[string]string{"resourcetemplate.karmada.io/claimed-by": "MultiClusterService"})
	foreign := newPolicy("other", "web", withSelectors(allDeployments))

	tests := map[string]struct {
		template *unstructured.Unstructured
		policies []Object
		want     Decision
		err      error
	}{
		"a template that does not exist is ignored":                      {policies: []Object{web}, want: IgnoreTemplate{}},
		"a template of a controller is ignored":                          {template: ofController, policies: []Object{web}, want: IgnoreTemplate{}},
		"the best policy is applied":                                     {template: newDeployment("shop", "web", nil), policies: []Object{all, web, better}, want: ApplyPolicy{better}},
		"a cluster policy is applied if no other policy matches":         {template: newDeployment("shop", "db", nil), policies: []Object{all, web}, want: ApplyPolicy{all}},
		"without a policy the template waits":                            {template: newDeployment("shop", "db", nil), policies: []Object{web}, want: WaitForPolicy{}},
		"a claimed template keeps its policy when a better one is added": {template: claimedTemplate(web), policies: []Object{web, better}, want: ApplyPolicy{web}},
		"a template keeps its cluster policy":                            {template: claimedTemplate(all), policies: []Object{all, web}, want: ApplyPolicy{all}},
		"a recreated policy takes over by name":                          {template: claimedTemplate(web), policies: []Object{recreated}, want: ApplyPolicy{recreated}},
		"a claim of a deleted policy is released":                        {template: claimedTemplate(web), policies: []Object{all}, want: ReleaseClaim{ClaimOf(web)}},
		"a claim of a policy that no longer matches is released":         {template: claimedTemplate(newPolicy("shop", "l")), policies: []Object{newPolicy("shop", "l", withSelectors(labelledOther)), web}, want: ReleaseClaim{Claim{Namespace: "shop", Name: "l", ID: "id-l"}}},
		"a claim copied from another namespace is released":              {template: claimedTemplate(foreign), policies: []Object{foreign}, want: ReleaseClaim{ClaimOf(foreign)}},
		"a claim of a policy that is being deleted is retried":           {template: claimedTemplate(web), policies: []Object{newPolicy("shop", "web", withDeletionTimestamp, withSelectors(webByName))}, err: ErrTerminating},
		"a policy without permanent id cannot claim":                     {template: newDeployment("shop", "web", nil), policies: []Object{noID}, err: ErrNoPermanentID},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			index := NewIndex()
			for _, p := range test.policies {
				index.Put(p)
			}
			got := Decide(test.template, index)
			if retry, ok := got.(RetryLater); ok || test.err != nil {
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
	policy := newPolicy("shop", "web")
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
		t.Errorf("error although all overrides exist: %v", err)
	}
}

func TestActivate(t *testing.T) {
	policy := newPolicy("shop", "web", withLazyActivation, withSelectors(webByName))
	template := newDeployment("shop", "web", map[string]string{"app": "web"})
	state := userHash(t, template)
	withState := func(state string) *unstructured.Unstructured {
		object := newDeployment("shop", "web", map[string]string{"app": "web"})
		object.SetAnnotations(map[string]string{policyv1alpha1.UserStateAnnotation: state})
		return object
	}
	notLazy := newPolicy("shop", "web", withSelectors(webByName))
	tests := map[string]struct {
		policy   Object
		template *unstructured.Unstructured
		binding  *unstructured.Unstructured
		cause    Trigger
		deferred bool
	}{
		"a change of a policy that is not lazy is applied":                  {policy: notLazy, template: template, cause: PolicyChanged},
		"a template created after the policy is propagated":                 {policy: policy, template: template, cause: TemplateChanged},
		"a template that waited for the policy is only claimed":             {policy: policy, template: template, cause: PolicyChanged, deferred: true},
		"changed rules do not propagate a template that waited":             {policy: policy, template: template, cause: RulesChanged, deferred: true},
		"a restart does not propagate a claimed template":                   {policy: policy, template: withState(state), cause: TemplateChanged, deferred: true},
		"a claimed template is propagated when the user changes it":         {policy: policy, template: withState("before"), cause: TemplateChanged},
		"a change of the policy does not update the binding":                {policy: policy, template: template, binding: withState(state), cause: PolicyChanged, deferred: true},
		"a restart does not update the binding":                             {policy: policy, template: template, binding: withState(state), cause: TemplateChanged, deferred: true},
		"a change by the user updates the binding":                          {policy: policy, template: template, binding: withState("before"), cause: TemplateChanged},
		"a change by the user is applied with a later change of the policy": {policy: policy, template: template, binding: withState("before"), cause: PolicyChanged},
		"a binding without a recorded state waits for the user":             {policy: policy, template: withState(state), binding: template, cause: PolicyChanged, deferred: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := DecideActivation(test.policy, test.template, bindingOrNil(test.binding), test.cause)
			if err != nil {
				t.Fatal(err)
			}
			if got.Deferred != test.deferred {
				t.Errorf("Deferred = %v, want %v", got.Deferred, test.deferred)
			}
			if wantState := test.policy == policy; (got.UserState == state) != wantState {
				t.Errorf("UserState = %q, want one: %v", got.UserState, wantState)
			}
		})
	}
}

func TestPreempts(t *testing.T) {
	pp := func(name string, p int32) Object { return newPolicy("shop", name, withPriority(p)) }
	cp := func(name string, p int32) Object { return newPolicy("", name, withPriority(p)) }
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
		"a template without a claim":                   {preemptor: pp("a", 2)},
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

func TestPreemptionCandidatesFollowLoweredPriority(t *testing.T) {
	candidates := []Object{
		newPolicy("shop", "one", withPriority(1), withPreemption),
		newPolicy("shop", "two", withPriority(2), withPreemption),
		newPolicy("shop", "four", withPriority(4), withPreemption),
		newPolicy("shop", "four-too", withPriority(4), withPreemption),
		newPolicy("shop", "no-preemption", withPriority(3)),
		newPolicy("shop", "terminating", withPriority(3), withPreemption, withDeletionTimestamp),
		newPolicy("shop", "five", withPriority(5), withPreemption),
		newPolicy("shop", "six", withPriority(6), withPreemption),
		newPolicy("shop", "no-priority", withPreemption),
	}
	tests := map[string]struct {
		before, after int32
		want          []string
	}{
		"several between and at the earlier priority": {5, 1, []string{"five", "four", "four-too", "two"}},
		"equal priorities before":                     {5, 4, []string{"five"}},
		"without a priority":                          {0, -1, []string{"no-priority"}},
		"raised":                                      {1, 5, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range PreemptionCandidates(test.before, test.after, candidates) {
				got = append(got, p.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("policies differ (-want +got):\n%s", diff)
			}
		})
	}
}

func withPreemption(p Object) { p.PropagationSpec().Preemption = "Always" }

// bindingOrNil converts a binding to an interface. It converts a nil pointer to a nil interface.
func bindingOrNil(binding *unstructured.Unstructured) metav1.Object {
	if binding == nil {
		return nil
	}
	return binding
}
