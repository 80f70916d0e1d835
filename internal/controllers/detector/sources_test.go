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

func TestTemplateQueueing(t *testing.T) {
	lazy := propagationPolicy("lazy")
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

	queued := []templateRequest{{webRef, policy.TemplateChanged}}
	tests := map[string]struct {
		before, after *unstructured.Unstructured
		want          []templateRequest
	}{
		"a new object":                      {nil, deployment(1), queued},
		"not one in a reserved namespace":   {nil, inSystem, nil},
		"another spec":                      {deployment(1), deployment(2), queued},
		"not another status":                {deployment(1), statusOnly, nil},
		"the first claim":                   {deployment(1), claimedBy(lazy, 1), queued},
		"the claim of another policy":       {claimedBy(lazy, 1), claimedBy(propagationPolicy("p"), 1), queued},
		"a Lazy policy that takes over":     {claimedBy(propagationPolicy("p"), 1), claimedBy(lazy, 1), []templateRequest{{webRef, policy.PolicyChanged}}},
		"a Lazy one and a change by a user": {claimedBy(propagationPolicy("p"), 1), claimedBy(lazy, 2), queued},
		"a deleted object":                  {deployment(1), nil, queued},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, lazy.DeepCopy(), propagationPolicy("p"))
			handle := h.onTemplates(deployments)
			switch {
			case tc.before == nil:
				handle.Create(t.Context(), event.TypedCreateEvent[*unstructured.Unstructured]{Object: tc.after}, h.queue)
			case tc.after == nil:
				handle.Delete(t.Context(), event.TypedDeleteEvent[*unstructured.Unstructured]{Object: tc.before}, h.queue)
			default:
				handle.Update(t.Context(), event.TypedUpdateEvent[*unstructured.Unstructured]{ObjectOld: tc.before, ObjectNew: tc.after}, h.queue)
			}
			if diff := cmp.Diff(tc.want, h.takeQueue(), cmp.AllowUnexported(templateRequest{}, templateRef{})); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRelevantPolicyUpdates(t *testing.T) {
	tests := map[string]struct {
		change func(*policyv1alpha1.PropagationPolicy)
		want   bool
	}{
		"not one without another spec": {func(p *policyv1alpha1.PropagationPolicy) { p.Annotations = map[string]string{"a": "b"} }, false},
		"another spec":                 {func(p *policyv1alpha1.PropagationPolicy) { p.Generation++ }, true},
		"its deletion":                 {func(p *policyv1alpha1.PropagationPolicy) { p.DeletionTimestamp = &metav1.Time{} }, true},
		"the first permanent ID": {func(p *policyv1alpha1.PropagationPolicy) {
			p.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "new"
		}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := propagationPolicy("p"), propagationPolicy("p")
			tc.change(after)
			if got := isRelevantUpdate(before, after); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPreemptorsAfterPriorityChange(t *testing.T) {
	withPriority := func(name string, priority int32) *policyv1alpha1.PropagationPolicy {
		p := propagationPolicy(name)
		p.Spec.Priority, p.Spec.Preemption = new(priority), policyv1alpha1.PreemptAlways
		return p
	}
	c := newPolicyCatalog()
	for _, p := range []policy.Object{withPriority("low", 1), withPriority("mid", 5), withPriority("high", 8), withPriority("top", 20), clusterPropagationPolicy("other")} {
		c.put(p)
	}
	names := func(all []policy.Object) (got []string) {
		for _, p := range all {
			got = append(got, p.GetName())
		}
		return got
	}
	if diff := cmp.Diff([]string{"high", "mid"}, names(c.preemptorsAfterUpdate(withPriority("p", 10), withPriority("p", 2)))); diff != "" {
		t.Errorf("when a priority falls (-want +got):\n%s", diff)
	}
	if got := c.preemptorsAfterUpdate(withPriority("p", 2), withPriority("p", 10)); len(got) != 0 {
		t.Errorf("when a priority rises: %v", names(got))
	}
	c.delete(withPriority("high", 8))
	if diff := cmp.Diff([]string{"mid"}, names(c.preemptorsAfterUpdate(withPriority("p", 10), withPriority("p", 2)))); diff != "" {
		t.Errorf("after one was deleted (-want +got):\n%s", diff)
	}
}

func TestOwnClaimWriteQueuesNothing(t *testing.T) {
	h := newFixture(t, deployment(1), propagationPolicy("p"))
	before := h.template()
	h.reconcile(policy.TemplateChanged)
	claimed := h.template()
	handle := h.onTemplates(deployments)
	update := func(from, to *unstructured.Unstructured) []templateRequest {
		handle.Update(t.Context(), event.TypedUpdateEvent[*unstructured.Unstructured]{ObjectOld: from, ObjectNew: to}, h.queue)
		return h.takeQueue()
	}
	if got := update(before, claimed); len(got) != 0 {
		t.Errorf("our own claim write queued %v", got)
	}
	if diff := cmp.Diff([]string{"Deployment shop/web"}, sortedNames(h.claims.templatesOf("id-p"))); diff != "" {
		t.Errorf("indexed claims (-want +got):\n%s", diff)
	}
	if got := update(before, claimed); len(got) != 1 {
		t.Errorf("the same change by another client queued %v", got)
	}
	h.claimWrites.expect(webRef, claimed, h.policies.get("shop", "p"))
	h.policies.put(propagationPolicy("p"))
	if got := update(before, claimed); len(got) != 1 {
		t.Errorf("our claim for a policy that changed since queued %v", got)
	}
	h.claimWrites.expect(webRef, claimed, h.policies.get("shop", "p"))
	scaled := claimed.DeepCopy()
	scaled.Object["spec"] = map[string]any{"replicas": int64(9)}
	if got := update(before, scaled); len(got) != 1 {
		t.Errorf("our claim together with a change by a user queued %v", got)
	}
}

func TestPolicyQueueing(t *testing.T) {
	preempting := func(name string, priority int32) *policyv1alpha1.PropagationPolicy {
		p := propagationPolicy(name)
		p.Spec.Preemption, p.Spec.Priority = policyv1alpha1.PreemptAlways, new(priority)
		return p
	}
	edited := func(p *policyv1alpha1.PropagationPolicy) *policyv1alpha1.PropagationPolicy {
		p.Generation++
		return p
	}
	terminating := propagationPolicy("p")
	terminating.DeletionTimestamp = &metav1.Time{}
	annotated := propagationPolicy("p")
	annotated.Annotations = map[string]string{"a": "b"}
	tests := map[string]struct {
		noPreemption  bool
		before, after *policyv1alpha1.PropagationPolicy
		initial       bool
		want          []string
	}{
		"a new one":                                        {after: propagationPolicy("p"), want: []string{"p"}},
		"not one of the initial list":                      {after: propagationPolicy("p"), initial: true},
		"one of the initial list that may preempt":         {after: preempting("p", 1), initial: true, want: []string{"p"}},
		"not without the preemption feature":               {noPreemption: true, after: preempting("p", 1), initial: true},
		"one of the initial list that is being deleted":    {after: terminating, initial: true, want: []string{"p"}},
		"another spec":                                     {before: propagationPolicy("p"), after: edited(propagationPolicy("p")), want: []string{"p"}},
		"not an annotation":                                {before: propagationPolicy("p"), after: annotated},
		"a lowered priority queues the new preemptors too": {before: preempting("p", 10), after: edited(preempting("p", 2)), want: []string{"p", "high", "mid"}},
		"a lowered priority alone, without the feature":    {noPreemption: true, before: preempting("p", 10), after: edited(preempting("p", 2)), want: []string{"p"}},
		"a raised priority alone":                          {before: preempting("p", 2), after: edited(preempting("p", 10)), want: []string{"p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			h.options.Preemption = !tc.noPreemption
			for _, peer := range []policy.Object{preempting("mid", 5), preempting("high", 8), preempting("top", 10), propagationPolicy("plain")} {
				h.policies.put(peer)
			}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			from := &policySource{detector: h.detector, scope: policyScopes[0]}
			if tc.before == nil {
				from.onAdd(queue, tc.after, tc.initial)
			} else {
				from.onUpdate(queue, tc.before, tc.after)
			}
			if h.policies.get("shop", "p") != tc.after {
				t.Error("the catalog does not contain the policy before it is queued")
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

func TestDeletedPolicyWithoutFinalizerQueuesItsTemplates(t *testing.T) {
	p := propagationPolicy("p")
	h := newFixture(t, deployment(1), p)
	h.reconcile(policy.TemplateChanged)
	h.claims.update(webRef, h.template())
	(&policySource{detector: h.detector, scope: policyScopes[0]}).onDelete(p)
	if diff := cmp.Diff([]templateRequest{{webRef, policy.TemplateChanged}}, h.takeQueue(), cmp.AllowUnexported(templateRequest{}, templateRef{})); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
}

func TestRecreatedPolicyQueuesTemplatesOfEarlierPolicy(t *testing.T) {
	p := propagationPolicy("p")
	h := newFixture(t, deployment(1), p)
	h.reconcile(policy.TemplateChanged)
	h.claims.update(webRef, h.template())
	recreated := propagationPolicy("p")
	recreated.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-recreated"}
	policies := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(policies.ShutDown)
	(&policySource{detector: h.detector, scope: policyScopes[0]}).onUpdate(policies, p, recreated)
	if diff := cmp.Diff([]templateRequest{{webRef, policy.TemplateChanged}}, h.takeQueue(), cmp.AllowUnexported(templateRequest{}, templateRef{})); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	h.reconcile(policy.TemplateChanged)
	if claim, _ := policy.ClaimedBy(h.binding()); claim != policy.ClaimOf(recreated) {
		t.Errorf("the binding is claimed by %+v", claim)
	}
}

func TestNewPolicyQueuesOnlySelectedWaitingTemplates(t *testing.T) {
	h := newFixture(t)
	for i := range 10_000 {
		h.waitingTemplates.add(refNamed(deployments, "shop", fmt.Sprintf("web-%d", i)), map[string]string{"app": fmt.Sprintf("web-%d", i)})
	}
	p := propagationPolicy("p")
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{
		APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web-77"}},
	}}
	if err := h.enqueueTemplatesOf(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	want := []templateRequest{{refNamed(deployments, "shop", "web-77"), policy.PolicyChanged}}
	if diff := cmp.Diff(want, h.takeQueue(), cmp.AllowUnexported(templateRequest{}, templateRef{})); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
}
