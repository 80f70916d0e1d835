package detector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func TestWhatQueuesATemplate(t *testing.T) {
	lazy := propagation("lazy")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	claimedBy := func(p policy.Object, replicas int64) *unstructured.Unstructured {
		object := deployment(replicas)
		policy.ClaimOf(p).Apply(object)
		return object
	}
	statusOnly := deployment(1)
	statusOnly.Object["status"] = map[string]any{"replicas": int64(1)}
	inSystem := deployment(1)
	inSystem.SetNamespace("karmada-system")

	queued := []request{{web, policy.TemplateChanged}}
	tests := map[string]struct {
		before, after *unstructured.Unstructured
		want          []request
	}{
		"a new object":                      {nil, deployment(1), queued},
		"not one of a reserved namespace":   {nil, inSystem, nil},
		"another spec":                      {deployment(1), deployment(2), queued},
		"not another status":                {deployment(1), statusOnly, nil},
		"our own first claim":               {deployment(1), claimedBy(lazy, 1), queued},
		"the claim of another policy":       {claimedBy(lazy, 1), claimedBy(propagation("p"), 1), queued},
		"a Lazy policy that takes over":     {claimedBy(propagation("p"), 1), claimedBy(lazy, 1), []request{{web, policy.PolicyChanged}}},
		"a Lazy one and a change by a user": {claimedBy(propagation("p"), 1), claimedBy(lazy, 2), queued},
		"an object that is gone":            {deployment(1), nil, queued},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, lazy.DeepCopy(), propagation("p"))
			handle := h.onTemplates(deployments)
			switch {
			case tc.before == nil:
				handle.Create(t.Context(), event.TypedCreateEvent[*unstructured.Unstructured]{Object: tc.after}, h.queue)
			case tc.after == nil:
				handle.Delete(t.Context(), event.TypedDeleteEvent[*unstructured.Unstructured]{Object: tc.before}, h.queue)
			default:
				handle.Update(t.Context(), event.TypedUpdateEvent[*unstructured.Unstructured]{ObjectOld: tc.before, ObjectNew: tc.after}, h.queue)
			}
			if diff := cmp.Diff(tc.want, h.queued(), cmp.AllowUnexported(request{}, reference{})); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichChangesOfAPolicyMatter(t *testing.T) {
	tests := map[string]struct {
		change func(*policyv1alpha1.PropagationPolicy)
		want   bool
	}{
		"not one that leaves the spec alone": {func(p *policyv1alpha1.PropagationPolicy) { p.Annotations = map[string]string{"a": "b"} }, false},
		"another spec":                       {func(p *policyv1alpha1.PropagationPolicy) { p.Generation++ }, true},
		"its deletion":                       {func(p *policyv1alpha1.PropagationPolicy) { p.DeletionTimestamp = &metav1.Time{} }, true},
		"an id at last": {func(p *policyv1alpha1.PropagationPolicy) {
			p.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "new"
		}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := propagation("p"), propagation("p")
			tc.change(after)
			if got := relevant(before, after); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestOvertakersAreThoseInBetween(t *testing.T) {
	withPriority := func(name string, priority int32) *policyv1alpha1.PropagationPolicy {
		p := propagation(name)
		p.Spec.Priority, p.Spec.Preemption = new(priority), policyv1alpha1.PreemptAlways
		return p
	}
	c := newCatalog()
	for _, p := range []policy.Object{withPriority("low", 1), withPriority("mid", 5), withPriority("high", 8), withPriority("top", 20), clusterPropagation("other")} {
		c.put(p)
	}
	names := func(all []policy.Object) (got []string) {
		for _, p := range all {
			got = append(got, p.GetName())
		}
		return got
	}
	if diff := cmp.Diff([]string{"high", "mid"}, names(c.overtakers(withPriority("p", 10), withPriority("p", 2)))); diff != "" {
		t.Errorf("when a priority falls (-want +got):\n%s", diff)
	}
	if got := c.overtakers(withPriority("p", 2), withPriority("p", 10)); len(got) != 0 {
		t.Errorf("when a priority rises: %v", names(got))
	}
	c.delete(withPriority("high", 8))
	if diff := cmp.Diff([]string{"mid"}, names(c.overtakers(withPriority("p", 10), withPriority("p", 2)))); diff != "" {
		t.Errorf("after one was deleted (-want +got):\n%s", diff)
	}
}

func TestOurOwnClaimQueuesNothing(t *testing.T) {
	h := newHouse(t, deployment(1), propagation("p"))
	before := h.template()
	h.pass(policy.TemplateChanged)
	claimed := h.template()
	handle := h.onTemplates(deployments)
	update := func(from, to *unstructured.Unstructured) []request {
		handle.Update(t.Context(), event.TypedUpdateEvent[*unstructured.Unstructured]{ObjectOld: from, ObjectNew: to}, h.queue)
		return h.queued()
	}
	if got := update(before, claimed); len(got) != 0 {
		t.Errorf("the echo of our claim queued %v", got)
	}
	if diff := cmp.Diff([]string{"Deployment shop/web"}, inOrder(h.claims.of("id-p"))); diff != "" {
		t.Errorf("known claims (-want +got):\n%s", diff)
	}
	if got := update(before, claimed); len(got) != 1 {
		t.Errorf("the same change, not made by us, queued %v", got)
	}
	h.echoes.expect(web, claimed, h.policies.get("shop", "p"))
	h.policies.put(propagation("p"))
	if got := update(before, claimed); len(got) != 1 {
		t.Errorf("the echo of a claim for a policy that changed since queued %v", got)
	}
	h.echoes.expect(web, claimed, h.policies.get("shop", "p"))
	scaled := claimed.DeepCopy()
	scaled.Object["spec"] = map[string]any{"replicas": int64(9)}
	if got := update(before, scaled); len(got) != 1 {
		t.Errorf("our claim together with a change by a user queued %v", got)
	}
}
