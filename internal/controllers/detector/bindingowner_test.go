package detector

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// otherDeploymentKind is a kind whose bindings have the same names as those of Deployments.
var otherDeploymentKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"}

var otherDeployment = newRef(otherDeploymentKind, "shop", "web")

// newSharedName returns a fixture in which one policy selects two templates whose bindings have the
// same usual name. The binding of the Deployment exists and has this name.
func newSharedName(t *testing.T) *fixture {
	t.Helper()
	other := newObject(otherDeploymentKind)
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

func (f *fixture) reconcileTemplate(r templateRef, cause policy.Trigger) []string {
	f.t.Helper()
	f.writes = nil
	if _, err := f.templateReconciler.Reconcile(f.t.Context(), r.request(cause)); err != nil {
		f.t.Fatalf("the reconcile failed: %v", err)
	}
	return f.writes
}

func (f *fixture) getOtherDeployment() *unstructured.Unstructured {
	f.t.Helper()
	found := newObject(otherDeploymentKind)
	if err := f.karmada.Get(f.t.Context(), otherDeployment.Key, found); err != nil {
		f.t.Fatal(err)
	}
	return found
}

func (f *fixture) otherBinding() binding.Object {
	f.t.Helper()
	bound, _, err := loop.FindTemplateBinding(f.t.Context(), f.karmada, otherDeploymentKind.GroupKind(), otherDeployment.Key)
	if err != nil || bound == nil {
		f.t.Fatalf("binding %v, error %v", bound, err)
	}
	return bound
}

func TestTemplatesWithOneBindingNameHaveOwnBindings(t *testing.T) {
	h := newSharedName(t)
	expectWrites(t, "of the second template", h.reconcileTemplate(otherDeployment, policy.TemplateChanged), "patch Deployment", "create ResourceBinding")
	expectEvents(t, "of the second template", h.takeEvents(), "Normal ApplyPolicySucceed")
	expectWrites(t, "a second time", h.reconcileTemplate(otherDeployment, policy.TemplateChanged))
	expectWrites(t, "of the first template", h.reconcileTemplate(webRef, policy.TemplateChanged))
	if got := h.binding().BindingSpec().Resource.APIVersion; got != "apps/v1" {
		t.Errorf("the first binding has a template of %s", got)
	}

	second := h.otherBinding()
	h.delete(h.template())
	h.delete(h.binding())
	expectWrites(t, "of the second template when the usual name is free", h.reconcileTemplate(otherDeployment, policy.TemplateChanged))
	if kept := h.otherBinding(); kept.GetName() != second.GetName() || kept.GetUID() != second.GetUID() {
		t.Errorf("binding %s replaced %s", kept.GetName(), second.GetName())
	}
}

func TestBindingOfOtherTemplateKeepsItsClaim(t *testing.T) {
	h := newSharedName(t)
	p := h.policies.get("shop", "p")
	claimed := h.getOtherDeployment()
	policy.ClaimOf(p).Apply(claimed)
	h.update(claimed)
	narrowed, ok := p.DeepCopyObject().(*policyv1alpha1.PropagationPolicy)
	if !ok {
		t.Fatal("the policy is not a PropagationPolicy")
	}
	narrowed.Spec.ResourceSelectors = narrowed.Spec.ResourceSelectors[:1]
	h.policies.put(narrowed)

	expectWrites(t, "of the release", h.reconcileTemplate(otherDeployment, policy.PolicyChanged), "patch Deployment")
	if got := claimIDOf(h.getOtherDeployment()); got != "" {
		t.Errorf("the template is still claimed by %q", got)
	}
	if got := claimIDOf(h.binding()); got != "id-p" {
		t.Errorf("the binding of the other template is claimed by %q", got)
	}
}
