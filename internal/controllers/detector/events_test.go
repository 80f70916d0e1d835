package detector

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func expectEvents(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	for i, event := range got {
		words := strings.SplitN(event, " ", 3)
		got[i] = words[0] + " " + words[1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events %s (-want +got):\n%s", when, diff)
	}
}

func TestTemplateEvents(t *testing.T) {
	first := propagationPolicy("first")
	h := newFixture(t, deployment(1), first)
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "of the first policy", h.takeEvents(), "Normal ApplyPolicySucceed")
	h.reconcile(policy.TemplateChanged)
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "without a difference", h.takeEvents())

	template := h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(5)}
	h.update(template)
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "of the user's own change", h.takeEvents())

	changed := &policyv1alpha1.PropagationPolicy{}
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(first), changed); err != nil {
		t.Fatal(err)
	}
	changed.Spec.PropagateDeps = true
	h.update(changed)
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "of a change of the policy", h.takeEvents(), "Normal ApplyPolicySucceed")

	second := propagationPolicy("second")
	h.policies.put(second)
	h.delete(changed)
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "before the next policy takes over", h.takeEvents())
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "of the policy that took over", h.takeEvents(), "Normal ApplyPolicySucceed")

	h.policies.delete(second)
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "when no policy is left", h.takeEvents(), "Normal PolicyLost")
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "of the template that no policy selects", h.takeEvents(), "Warning ApplyPolicyFailed")
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "after the event was recorded", h.takeEvents())
}

func TestNoPolicyLostEventWithoutBinding(t *testing.T) {
	lazy := propagationPolicy("lazy")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	h := newFixture(t, deployment(1), lazy)
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "of a Lazy policy", h.takeEvents(), "Normal PolicyDeferred")
	h.delete(lazy)
	h.reconcile(policy.TemplateChanged)
	if got := claimIDOf(h.template()); got != "" {
		t.Fatalf("still claimed by %q", got)
	}
	expectEvents(t, "without a binding", h.takeEvents())
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "while it waits", h.takeEvents())
}

func TestNoPolicyLostEventForTerminatingTemplate(t *testing.T) {
	terminating := deployment(1)
	terminating.SetFinalizers([]string{"example.com/keep"})
	p := propagationPolicy("p")
	h := newFixture(t, terminating, p)
	h.reconcile(policy.TemplateChanged)
	h.takeEvents()
	if err := h.karmada.Delete(t.Context(), h.template()); err != nil {
		t.Fatal(err)
	}
	h.delete(p)
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "when it is deleted", h.takeEvents())
}
