package detector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

// otherDeploymentKind is a kind whose bindings have the same names as those of Deployments.
var otherDeploymentKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"}

var otherDeployment = templates.NewRef(otherDeploymentKind, "shop", "web")

// newNameCollision returns a fixture in which one policy selects two templates that need a binding
// with the same name. The Deployment owns this binding.
func newNameCollision(t *testing.T) *fixture {
	t.Helper()
	other := templates.NewObject(otherDeploymentKind)
	other.SetNamespace("shop")
	other.SetName("web")
	other.SetUID("uid-other")
	p := propagationPolicy("p")
	p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{
		APIVersion: "example.com/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
	})
	h := newFixture(t, deployment(1), other, p)
	h.watchedKinds.Add(otherDeploymentKind, func() {})
	h.reconcile(policy.TemplateChanged)
	h.takeEvents()
	return h
}

func (f *fixture) reconcileTemplate(r templates.Ref, cause policy.Trigger) []string {
	f.t.Helper()
	f.writes = nil
	if _, err := f.templateReconciler.Reconcile(f.t.Context(), r.Request(cause)); err != nil {
		f.t.Fatalf("the reconcile failed: %v", err)
	}
	return f.writes
}

func (f *fixture) getOtherDeployment() *unstructured.Unstructured {
	f.t.Helper()
	found := templates.NewObject(otherDeploymentKind)
	if err := f.karmada.Get(f.t.Context(), otherDeployment.Key, found); err != nil {
		f.t.Fatal(err)
	}
	return found
}

func TestBindingOfOtherTemplateRecordsEventAndWritesNothing(t *testing.T) {
	h := newNameCollision(t)
	expectWrites(t, "of the second template", h.reconcileTemplate(otherDeployment, policy.TemplateChanged))
	expectEvents(t, "of the second template", h.takeEvents(), "Warning ApplyPolicyFailed")
	h.reconcileTemplate(otherDeployment, policy.PolicyChanged)
	expectEvents(t, "a second time", h.takeEvents())

	expectWrites(t, "of the owner", h.reconcileTemplate(webRef, policy.TemplateChanged))
	h.delete(h.template())
	ownerBinding := h.binding()
	h.delete(ownerBinding)
	h.startup.OnBindings().OnDelete(ownerBinding)
	want := []templates.Request{webRef.Request(policy.TemplateChanged), otherDeployment.Request(policy.TemplateChanged), otherDeployment.Request(policy.PolicyChanged)}
	inAnyOrder := cmp.Transformer("set", func(all []templates.Request) map[templates.Request]bool {
		set := map[templates.Request]bool{}
		for _, r := range all {
			set[r] = true
		}
		return set
	})
	if diff := cmp.Diff(want, h.takeQueue(), inAnyOrder); diff != "" {
		t.Errorf("queued after the owner was deleted (-want +got):\n%s", diff)
	}
	expectWrites(t, "once the name is free", h.reconcileTemplate(otherDeployment, policy.TemplateChanged), "patch Deployment", "create ResourceBinding")
}

func TestBindingOfOtherTemplateKeepsItsClaim(t *testing.T) {
	h := newNameCollision(t)
	p := h.policies.Get("shop", "p")
	claimed := h.getOtherDeployment()
	policy.ClaimOf(p).Apply(claimed)
	h.update(claimed)
	narrowed, ok := p.DeepCopyObject().(*policyv1alpha1.PropagationPolicy)
	if !ok {
		t.Fatal("the policy is not a PropagationPolicy")
	}
	narrowed.Spec.ResourceSelectors = narrowed.Spec.ResourceSelectors[:1]
	h.policies.Put(narrowed)

	expectWrites(t, "of the release", h.reconcileTemplate(otherDeployment, policy.PolicyChanged), "patch Deployment")
	if got := claimIDOf(h.getOtherDeployment()); got != "" {
		t.Errorf("the template is still claimed by %q", got)
	}
	if got := claimIDOf(h.binding()); got != "id-p" {
		t.Errorf("the binding of the other template is claimed by %q", got)
	}
}
