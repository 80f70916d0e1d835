package detector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func TestSuspensionIsReportedWhenItChanges(t *testing.T) {
	p := propagation("p")
	h := newHouse(t, deployment(1), p)
	h.pass(policy.TemplateChanged)
	h.told()
	handle := h.entrance.onBindings()
	plain := h.binding()
	handle.OnAdd(plain, false)
	expectTold(t, "of a binding without suspension", h.told())

	suspended := plain.DeepCopy()
	suspended.Spec.Suspension = policy.Suspend(&policyv1alpha1.Suspension{Dispatching: new(true)}, nil)
	handle.OnUpdate(plain, suspended)
	want := []string{"Normal PropagationSuspended PropagationPolicy shop/p suspends dispatching: changes reach no cluster"}
	if diff := cmp.Diff(want, h.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	handle.OnUpdate(suspended, suspended.DeepCopy())
	expectTold(t, "when nothing changed", h.told())
	handle.OnAdd(suspended, true)
	expectTold(t, "after a restart", h.told())
	handle.OnAdd(suspended, false)
	expectTold(t, "of a new binding", h.told(), "Normal PropagationSuspended")
	handle.OnUpdate(suspended, plain)
	expectTold(t, "of the end", h.told(), "Normal PropagationResumed")
}

func TestALazyPolicySaysThatItWaits(t *testing.T) {
	lazy := propagation("lazy")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	h := newHouse(t, deployment(1), lazy)
	h.pass(policy.PolicyChanged)
	want := []string{"Normal PolicyDeferred Claimed by PropagationPolicy shop/lazy, which is Lazy: it takes effect at the next change of this object"}
	if diff := cmp.Diff(want, h.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	h.pass(policy.TemplateChanged)
	h.pass(policy.PolicyChanged)
	expectTold(t, "while it waits", h.told())

	template := h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(5)}
	h.change(template)
	h.pass(policy.TemplateChanged)
	expectTold(t, "when the user changes the object", h.told(), "Normal ApplyPolicySucceed")

	changed := &policyv1alpha1.PropagationPolicy{}
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(lazy), changed); err != nil {
		t.Fatal(err)
	}
	changed.Spec.PropagateDeps = true
	h.change(changed)
	h.pass(policy.PolicyChanged)
	want = []string{"Normal PolicyDeferred PropagationPolicy shop/lazy changed and is Lazy: it takes effect at the next change of this object"}
	if diff := cmp.Diff(want, h.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
