package detector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// rivals is a kind whose bindings are called like those of Deployments.
var rivals = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"}

var rival = named(rivals, "shop", "web")

// newRivalry is a house in which one policy selects two templates that need a
// binding of the same name. The Deployment has it.
func newRivalry(t *testing.T) *house {
	t.Helper()
	other := blank(rivals)
	other.SetNamespace("shop")
	other.SetName("web")
	other.SetUID("uid-rival")
	p := propagation("p")
	p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{
		APIVersion: "example.com/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
	})
	h := newHouse(t, deployment(1), other, p)
	h.kinds.add(rivals, func() {})
	h.pass(policy.TemplateChanged)
	h.told()
	return h
}

func (h *house) passOf(r reference, cause policy.Cause) []string {
	h.t.Helper()
	h.writes = nil
	if _, err := (templateReconciler{h.detector}).Reconcile(h.t.Context(), request{r, cause}); err != nil {
		h.t.Fatalf("the pass failed: %v", err)
	}
	return h.writes
}

func (h *house) rival() *unstructured.Unstructured {
	h.t.Helper()
	found := blank(rivals)
	if err := h.karmada.Get(h.t.Context(), rival.key, found); err != nil {
		h.t.Fatal(err)
	}
	return found
}

func TestATemplateWhoseBindingIsTakenIsToldAndWritesNothing(t *testing.T) {
	h := newRivalry(t)
	expectWrites(t, "of the one that comes second", h.passOf(rival, policy.TemplateChanged))
	expectTold(t, "of the one that comes second", h.told(), "Warning ApplyPolicyFailed")
	h.passOf(rival, policy.PolicyChanged)
	expectTold(t, "a second time", h.told())

	expectWrites(t, "of the holder", h.passOf(web, policy.TemplateChanged))
	h.delete(h.template())
	holder := h.binding()
	h.delete(holder)
	h.entrance.onBindings().OnDelete(holder)
	want := []request{{web, policy.TemplateChanged}, {rival, policy.TemplateChanged}, {rival, policy.PolicyChanged}}
	inAnyOrder := cmp.Transformer("set", func(all []request) map[request]bool {
		set := map[request]bool{}
		for _, r := range all {
			set[r] = true
		}
		return set
	})
	if diff := cmp.Diff(want, h.queued(), inAnyOrder, cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Errorf("queued at the end of the holder (-want +got):\n%s", diff)
	}
	expectWrites(t, "once the name is free", h.passOf(rival, policy.TemplateChanged), "patch Deployment", "create ResourceBinding")
}

func TestATemplateWhoseBindingIsTakenLetsTheHolderKeepItsClaim(t *testing.T) {
	h := newRivalry(t)
	p := h.policies.get("shop", "p")
	claimed := h.rival()
	policy.ClaimOf(p).Apply(claimed)
	h.change(claimed)
	narrowed, ok := p.DeepCopyObject().(*policyv1alpha1.PropagationPolicy)
	if !ok {
		t.Fatal("the policy is no PropagationPolicy")
	}
	narrowed.Spec.ResourceSelectors = narrowed.Spec.ResourceSelectors[:1]
	h.policies.put(narrowed)

	expectWrites(t, "of the release", h.passOf(rival, policy.PolicyChanged), "patch Deployment")
	if got := claimOn(h.rival()); got != "" {
		t.Errorf("it is still claimed by %q", got)
	}
	if got := claimOn(h.binding()); got != "id-p" {
		t.Errorf("the holder's binding is claimed by %q", got)
	}
}
