package detector

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func expectTold(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	for i, event := range got {
		words := strings.SplitN(event, " ", 3)
		got[i] = words[0] + " " + words[1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told %s (-want +got):\n%s", when, diff)
	}
}

func TestWhatTheOwnerOfATemplateIsTold(t *testing.T) {
	first := propagation("first")
	h := newHouse(t, deployment(1), first)
	h.pass(policy.TemplateChanged)
	expectTold(t, "of the first policy", h.told(), "Normal ApplyPolicySucceed")
	h.pass(policy.TemplateChanged)
	h.pass(policy.PolicyChanged)
	expectTold(t, "when all is in order", h.told())

	template := h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(5)}
	h.change(template)
	h.pass(policy.TemplateChanged)
	expectTold(t, "of his own change", h.told())

	changed := &policyv1alpha1.PropagationPolicy{}
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(first), changed); err != nil {
		t.Fatal(err)
	}
	changed.Spec.PropagateDeps = true
	h.change(changed)
	h.pass(policy.PolicyChanged)
	expectTold(t, "of a change of the policy", h.told(), "Normal ApplyPolicySucceed")

	second := propagation("second")
	h.policies.put(second)
	h.delete(changed)
	h.pass(policy.TemplateChanged)
	expectTold(t, "when the next policy is about to take over", h.told())
	h.pass(policy.TemplateChanged)
	expectTold(t, "of the policy that took over", h.told(), "Normal ApplyPolicySucceed")

	h.policies.delete(second)
	h.pass(policy.TemplateChanged)
	expectTold(t, "when no policy is left", h.told(), "Normal PolicyLost")
	h.pass(policy.TemplateChanged)
	expectTold(t, "of the template that no policy selects", h.told(), "Warning ApplyPolicyFailed")
	h.pass(policy.TemplateChanged)
	expectTold(t, "once he knows", h.told())
}

func TestATemplateThatNeverHadABindingLosesNothing(t *testing.T) {
	lazy := propagation("lazy")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	h := newHouse(t, deployment(1), lazy)
	h.pass(policy.PolicyChanged)
	expectTold(t, "of a policy that waits", h.told(), "Normal PolicyDeferred")
	h.delete(lazy)
	h.pass(policy.TemplateChanged)
	if got := claimOn(h.template()); got != "" {
		t.Fatalf("still claimed by %q", got)
	}
	expectTold(t, "without a binding", h.told())
	h.pass(policy.TemplateChanged)
	expectTold(t, "while it waits", h.told())
}

func TestATerminatingTemplateIsToldOfNoLoss(t *testing.T) {
	dying := deployment(1)
	dying.SetFinalizers([]string{"example.com/keep"})
	p := propagation("p")
	h := newHouse(t, dying, p)
	h.pass(policy.TemplateChanged)
	h.told()
	if err := h.karmada.Delete(t.Context(), h.template()); err != nil {
		t.Fatal(err)
	}
	h.delete(p)
	h.pass(policy.TemplateChanged)
	expectTold(t, "at its end", h.told())
}
