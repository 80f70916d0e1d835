package detector

import (
	"testing"

	"karmada.io/karmada/internal/domain/policy"
)

func TestBindingGetsPriorityClassValue(t *testing.T) {
	p := withPriorityClass(propagationPolicy("p"), "high")
	h := newFixture(t, deployment(1), p)
	failed := func() bool {
		h.writes = nil
		_, err := h.templateReconciler.Reconcile(t.Context(), webRef.request(policy.PolicyChanged))
		return err != nil
	}
	if !failed() || h.binding() != nil {
		t.Fatal("a binding was created although the class does not exist")
	}
	expectEvents(t, "without the class", h.takeEvents(), "Warning ApplyPolicyFailed")
	if err := h.karmada.Create(t.Context(), newPriorityClass("high", 100)); err != nil {
		t.Fatal(err)
	}
	h.reconcile(policy.PolicyChanged)
	if got := h.binding().Spec.SchedulePriority; got == nil || got.Priority != 100 {
		t.Errorf("priority %+v", got)
	}
	h.binder.features.priorityScheduling = false
	h.reconcile(policy.PolicyChanged)
	if got := h.binding().Spec.SchedulePriority; got != nil {
		t.Errorf("priority %+v without the feature", got)
	}
	h.binder.features.priorityScheduling = true
	p.PropagationSpec().SchedulePriority.PriorityClassSource = "PodPriorityClass"
	h.policies.put(p)
	if !failed() {
		t.Error("an unsupported source is accepted")
	}
}
