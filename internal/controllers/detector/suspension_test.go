package detector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func TestSuspensionIsReportedWhenItChanges(t *testing.T) {
	p := propagationPolicy("p")
	h := newFixture(t, deployment(1), p)
	h.reconcile(policy.TemplateChanged)
	h.takeEvents()
	handle := h.startup.newBindingHandler()
	plain := h.binding()
	handle.OnAdd(plain, false)
	expectEvents(t, "of a binding without suspension", h.takeEvents())

	suspended := plain.DeepCopy()
	suspended.Spec.Suspension = policy.MergeSuspension(&policyv1alpha1.Suspension{Dispatching: new(true)}, nil)
	handle.OnUpdate(plain, suspended)
	want := []string{"Normal PropagationSuspended PropagationPolicy shop/p suspends dispatching: changes reach no cluster"}
	if diff := cmp.Diff(want, h.takeEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	handle.OnUpdate(suspended, suspended.DeepCopy())
	expectEvents(t, "when nothing changed", h.takeEvents())
	handle.OnAdd(suspended, true)
	expectEvents(t, "after a restart", h.takeEvents())
	handle.OnAdd(suspended, false)
	expectEvents(t, "of a new binding", h.takeEvents(), "Normal PropagationSuspended")
	handle.OnUpdate(suspended, plain)
	expectEvents(t, "when it is resumed", h.takeEvents(), "Normal PropagationResumed")
}

func TestLazyPolicyRecordsDeferral(t *testing.T) {
	lazy := propagationPolicy("lazy")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	h := newFixture(t, deployment(1), lazy)
	h.reconcile(policy.PolicyChanged)
	want := []string{"Normal PolicyDeferred Claimed by PropagationPolicy shop/lazy, which is Lazy: it takes effect at the next change of this object"}
	if diff := cmp.Diff(want, h.takeEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	h.reconcile(policy.TemplateChanged)
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "while the policy is deferred", h.takeEvents())

	template := h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(5)}
	h.update(template)
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "when the user changes the object", h.takeEvents(), "Normal ApplyPolicySucceed")

	changed := &policyv1alpha1.PropagationPolicy{}
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(lazy), changed); err != nil {
		t.Fatal(err)
	}
	changed.Spec.PropagateDeps = true
	h.update(changed)
	h.reconcile(policy.PolicyChanged)
	want = []string{"Normal PolicyDeferred PropagationPolicy shop/lazy changed and is Lazy: it takes effect at the next change of this object"}
	if diff := cmp.Diff(want, h.takeEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
