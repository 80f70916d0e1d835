package detector

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

func TestWhatQueuesAPolicy(t *testing.T) {
	preempting := func(name string, priority int32) *policyv1alpha1.PropagationPolicy {
		p := propagation(name)
		p.Spec.Preemption, p.Spec.Priority = policyv1alpha1.PreemptAlways, new(priority)
		return p
	}
	edited := func(p *policyv1alpha1.PropagationPolicy) *policyv1alpha1.PropagationPolicy {
		p.Generation++
		return p
	}
	dying := propagation("p")
	dying.DeletionTimestamp = &metav1.Time{}
	noted := propagation("p")
	noted.Annotations = map[string]string{"a": "b"}
	tests := map[string]struct {
		without       bool
		before, after *policyv1alpha1.PropagationPolicy
		initial       bool
		want          []string
	}{
		"a new one": {after: propagation("p"), want: []string{"p"}},
		"not one of the start, whose templates come":    {after: propagation("p"), initial: true},
		"one of the start that may preempt":             {after: preempting("p", 1), initial: true, want: []string{"p"}},
		"not without the feature":                       {without: true, after: preempting("p", 1), initial: true},
		"one of the start that is being deleted":        {after: dying, initial: true, want: []string{"p"}},
		"another spec":                                  {before: propagation("p"), after: edited(propagation("p")), want: []string{"p"}},
		"not an annotation":                             {before: propagation("p"), after: noted},
		"a lowered priority and those that overtake":    {before: preempting("p", 10), after: edited(preempting("p", 2)), want: []string{"p", "high", "mid"}},
		"a lowered priority alone, without the feature": {without: true, before: preempting("p", 10), after: edited(preempting("p", 2)), want: []string{"p"}},
		"a raised priority alone":                       {before: preempting("p", 2), after: edited(preempting("p", 10)), want: []string{"p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.options.Preemption = !tc.without
			for _, peer := range []policy.Object{preempting("mid", 5), preempting("high", 8), preempting("top", 10), propagation("meek")} {
				h.policies.put(peer)
			}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			from := &policySource{detector: h.detector, scope: scopes[0]}
			if tc.before == nil {
				from.added(queue, tc.after, tc.initial)
			} else {
				from.changed(queue, tc.before, tc.after)
			}
			if h.policies.get("shop", "p") != tc.after {
				t.Error("decisions do not know the policy before it is worked on")
			}
			var got []string
			for queue.Len() > 0 {
				one, _ := queue.Get()
				queue.Done(one)
				got = append(got, one.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEndOfAPolicyWithoutFinalizerQueuesItsTemplates(t *testing.T) {
	p := propagation("p")
	h := newHouse(t, deployment(1), p)
	h.pass(policy.TemplateChanged)
	h.claims.observe(web, h.template())
	(&policySource{detector: h.detector, scope: scopes[0]}).deleted(p)
	if diff := cmp.Diff([]request{{web, policy.TemplateChanged}}, h.queued(), cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
}

func TestAPolicyMadeAnewWhileNobodyWatchedQueuesWhatItsPredecessorClaimed(t *testing.T) {
	p := propagation("p")
	h := newHouse(t, deployment(1), p)
	h.pass(policy.TemplateChanged)
	h.claims.observe(web, h.template())
	anew := propagation("p")
	anew.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-anew"}
	policies := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(policies.ShutDown)
	(&policySource{detector: h.detector, scope: scopes[0]}).changed(policies, p, anew)
	if diff := cmp.Diff([]request{{web, policy.TemplateChanged}}, h.queued(), cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	h.pass(policy.TemplateChanged)
	if claim, _ := policy.ClaimedBy(h.binding()); claim != policy.ClaimOf(anew) {
		t.Errorf("the binding is claimed by %+v", claim)
	}
}

func TestANewPolicyQueuesOnlyTheWaitingTemplatesItSelects(t *testing.T) {
	h := newHouse(t)
	for i := range 10_000 {
		h.waiting.add(named(deployments, "shop", fmt.Sprintf("web-%d", i)), map[string]string{"app": fmt.Sprintf("web-%d", i)})
	}
	p := propagation("p")
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{
		APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web-77"}},
	}}
	if err := h.spread(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	want := []request{{named(deployments, "shop", "web-77"), policy.PolicyChanged}}
	if diff := cmp.Diff(want, h.queued(), cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
}
