package detector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

func TestNewTemplateCostsOnePatchAndOneCreate(t *testing.T) {
	h := newFixture(t, deployment(2), propagationPolicy("p"))
	_, writes := h.reconcile(policy.TemplateChanged)
	expectWrites(t, "of the first reconcile", writes, "patch Deployment", "create ResourceBinding")

	template, bound := h.template(), h.binding()
	if claimIDOf(template) != "id-p" || claimIDOf(bound) != "id-p" {
		t.Errorf("claims: template %q, binding %q", claimIDOf(template), claimIDOf(bound))
	}
	if binding.PermanentID(bound) == "" || len(bound.Finalizers) != 1 || !metav1.IsControlledBy(bound, template) {
		t.Errorf("not created complete: labels %v, finalizers %v, owners %v", bound.Labels, bound.Finalizers, bound.OwnerReferences)
	}
	if bound.Spec.Replicas != 2 || bound.Spec.Resource.ResourceVersion != template.GetResourceVersion() {
		t.Errorf("replicas %d, resourceVersion %s of %s", bound.Spec.Replicas, bound.Spec.Resource.ResourceVersion, template.GetResourceVersion())
	}
	_, writes = h.reconcile(policy.TemplateChanged)
	expectWrites(t, "without a difference", writes)

	template = template.DeepCopy()
	template.Object["spec"] = map[string]any{"replicas": int64(5)}
	h.update(template)
	_, writes = h.reconcile(policy.TemplateChanged)
	expectWrites(t, "when the template changed", writes, "patch ResourceBinding")
	if got := h.binding().Spec.Replicas; got != 5 {
		t.Errorf("replicas %d", got)
	}
}

func TestNewPolicyClaimsWaitingTemplate(t *testing.T) {
	h := newFixture(t, deployment(1))
	if _, writes := h.reconcile(policy.TemplateChanged); len(writes) != 0 {
		t.Fatalf("wrote %v without a policy", writes)
	}
	h.policies.put(propagationPolicy("p"))
	if err := h.policyReconcilers[0].enqueueTemplatesOf(t.Context(), propagationPolicy("p")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]templateRequest{webRef.request(policy.PolicyChanged)}, h.takeQueue()); diff != "" {
		t.Fatalf("queued (-want +got):\n%s", diff)
	}
	_, writes := h.reconcile(policy.PolicyChanged)
	expectWrites(t, "once there is a policy", writes, "patch Deployment", "create ResourceBinding")
	if got := h.waiting.matching(policy.Filter{Kind: deployments}); len(got) != 0 {
		t.Errorf("%v are still waiting", got)
	}
}

func TestTemplateIsReleasedWhenPolicySelectsItNoLonger(t *testing.T) {
	p := propagationPolicy("p")
	h := newFixture(t, deployment(1), p, newClusterPropagationPolicy("fallback"))
	h.reconcile(policy.TemplateChanged)
	narrowed := &policyv1alpha1.PropagationPolicy{}
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(p), narrowed); err != nil {
		t.Fatal(err)
	}
	narrowed.Spec.ResourceSelectors = selectors("another")
	h.update(narrowed)

	_, writes := h.reconcile(policy.PolicyChanged)
	expectWrites(t, "of the release, binding first", writes, "patch ResourceBinding", "patch Deployment")
	if claimIDOf(h.template()) != "" || claimIDOf(h.binding()) != "" {
		t.Fatalf("claims: template %q, binding %q", claimIDOf(h.template()), claimIDOf(h.binding()))
	}
	h.reconcile(policy.TemplateChanged)
	if claimIDOf(h.template()) != "id-fallback" || claimIDOf(h.binding()) != "id-fallback" {
		t.Errorf("claims after the next match: template %q, binding %q", claimIDOf(h.template()), claimIDOf(h.binding()))
	}
}

func TestPolicyMissingOnlyInCacheReleasesNothing(t *testing.T) {
	p := propagationPolicy("p")
	h := newFixture(t, deployment(1), p)
	h.reconcile(policy.TemplateChanged)
	h.policies.delete(p) // as in a stale cache
	result, writes := h.reconcile(policy.TemplateChanged)
	expectWrites(t, "while the policy exists", writes)
	if result.RequeueAfter != blockedRetryDelay {
		t.Errorf("requeued after %s", result.RequeueAfter)
	}
	if err := h.karmada.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := h.karmada.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h.reconcile(policy.TemplateChanged)
	if claimIDOf(h.template()) != "" || claimIDOf(h.binding()) != "" {
		t.Errorf("claims of a deleted policy: template %q, binding %q", claimIDOf(h.template()), claimIDOf(h.binding()))
	}
}

func TestDeletedPolicyReleasesTemplatesBeforeFinalizerIsRemoved(t *testing.T) {
	p := propagationPolicy("p")
	h := newFixture(t, deployment(1), p)
	h.reconcile(policy.TemplateChanged)
	if err := h.karmada.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h.writes = nil
	if _, err := h.policyReconcilers[0].Reconcile(t.Context(), policyRequest(p)); err != nil {
		t.Fatal(err)
	}
	expectWrites(t, "of the deletion", h.writes, "patch ResourceBinding", "patch Deployment", "patch PropagationPolicy")
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(p), &policyv1alpha1.PropagationPolicy{}); !apierrors.IsNotFound(err) {
		t.Errorf("the policy still exists: %v", err)
	}
	if claimIDOf(h.template()) != "" || h.binding() == nil || claimIDOf(h.binding()) != "" {
		t.Error("the binding must stay, and neither the binding nor the template may have a claim")
	}
}

func TestTemplateWaitsForDependentOverrides(t *testing.T) {
	p := propagationPolicy("p")
	p.Spec.DependentOverrides = []string{"o"}
	h := newFixture(t, deployment(1), p)
	if _, writes := h.reconcile(policy.TemplateChanged); len(writes) != 0 {
		t.Fatalf("wrote %v before the override exists", writes)
	}
	override := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}}
	if err := h.karmada.Create(t.Context(), override); err != nil {
		t.Fatal(err)
	}
	h.startup.newOverrideHandler().OnAdd(override, false)
	if diff := cmp.Diff([]templateRequest{webRef.request(policy.TemplateChanged)}, h.takeQueue()); diff != "" {
		t.Fatalf("queued (-want +got):\n%s", diff)
	}
	_, writes := h.reconcile(policy.TemplateChanged)
	expectWrites(t, "once the override exists", writes, "patch Deployment", "create ResourceBinding")
}

func TestLazyPolicyOnlyClaimsWaitingTemplate(t *testing.T) {
	p := propagationPolicy("p")
	p.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	h := newFixture(t, deployment(1), p)
	_, writes := h.reconcile(policy.PolicyChanged)
	expectWrites(t, "because of the policy", writes, "patch Deployment")
	_, writes = h.reconcile(policy.TemplateChanged)
	expectWrites(t, "because of our own claim", writes)

	template := h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(3)}
	h.update(template)
	_, writes = h.reconcile(policy.TemplateChanged)
	expectWrites(t, "because of the user", writes, "patch Deployment", "create ResourceBinding")
	if got := h.template().GetAnnotations()[policyv1alpha1.UserStateAnnotation]; got != "" {
		t.Errorf("the template still has the recorded user state %q", got)
	}
	_, writes = h.reconcile(policy.TemplateChanged)
	expectWrites(t, "afterwards", writes)
}

func TestLazyPolicyTakesOverBindingWithoutChangingSpec(t *testing.T) {
	lazy := propagationPolicy("lazy")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	lazy.Spec.PropagateDeps = true
	first := propagationPolicy("first")
	h := newFixture(t, deployment(1), first)
	h.reconcile(policy.TemplateChanged)
	h.policies.put(lazy)
	template := h.template()
	policy.ClaimOf(lazy).Apply(template)
	h.update(template)

	h.reconcile(policy.PolicyChanged)
	h.reconcile(policy.TemplateChanged)
	if h.binding().Spec.PropagateDeps || claimIDOf(h.binding()) != "id-first" {
		t.Fatal("the binding changed before the user changed the template")
	}
	template = h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(3)}
	h.update(template)
	h.reconcile(policy.TemplateChanged)
	if !h.binding().Spec.PropagateDeps || claimIDOf(h.binding()) != "id-lazy" {
		t.Error("the binding does not contain the user's change")
	}
}

func TestPreemption(t *testing.T) {
	preemptor := propagationPolicy("strong")
	preemptor.Spec.Preemption = policyv1alpha1.PreemptAlways
	for name, on := range map[string]bool{"a template is preempted with the feature": true, "nothing is preempted without the feature": false} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, deployment(1), newClusterPropagationPolicy("weak"))
			h.preemptor.enabled = on
			h.reconcile(policy.TemplateChanged)
			h.policies.put(preemptor)
			if err := h.preemptor.preempt(t.Context(), preemptor); err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "id-strong", false: "id-weak"}[on]
			if got := claimIDOf(h.template()); got != want {
				t.Errorf("claimed by %q, want %q", got, want)
			}
			h.reconcile(policy.TemplateChanged)
			if got := claimIDOf(h.binding()); got != want {
				t.Errorf("the binding is claimed by %q, want %q", got, want)
			}
		})
	}
}

func TestTemplateWaitsForBindingOfEarlierTemplate(t *testing.T) {
	h := newFixture(t, deployment(1), propagationPolicy("p"))
	h.reconcile(policy.TemplateChanged)
	if err := h.karmada.Delete(t.Context(), h.template()); err != nil {
		t.Fatal(err)
	}
	recreated := deployment(1)
	recreated.SetUID("uid-again")
	if err := h.karmada.Create(t.Context(), recreated); err != nil {
		t.Fatal(err)
	}
	result, writes := h.reconcile(policy.TemplateChanged)
	expectWrites(t, "while the old binding exists", writes, "patch Deployment")
	if result.RequeueAfter <= 0 || result.RequeueAfter > 5*time.Second {
		t.Errorf("requeued after %s", result.RequeueAfter)
	}
	h.startup.newBindingHandler().OnDelete(h.binding())
	if len(h.takeQueue()) != 1 {
		t.Error("the deletion of the old binding queued nothing")
	}
}

func TestLeftoverClaimOnBindingIsRemoved(t *testing.T) {
	h := newFixture(t, deployment(1), propagationPolicy("p"))
	h.reconcile(policy.TemplateChanged)
	template := h.template()
	claim, _ := policy.ClaimedBy(template)
	claim.Remove(template)
	h.update(template)
	h.policies.delete(propagationPolicy("p"))
	_, writes := h.reconcile(policy.TemplateChanged)
	expectWrites(t, "without a policy", writes, "patch ResourceBinding")
	if got := claimIDOf(h.binding()); got != "" {
		t.Errorf("the binding is still claimed by %q", got)
	}
}

func TestTerminatingTemplateGetsNoNewBinding(t *testing.T) {
	terminating := deployment(1)
	terminating.SetFinalizers([]string{"example.com/keep"})
	h := newFixture(t, terminating, propagationPolicy("p"))
	if err := h.karmada.Delete(t.Context(), h.template()); err != nil {
		t.Fatal(err)
	}
	h.reconcile(policy.TemplateChanged)
	if h.binding() != nil {
		t.Error("a binding was created for a template that is being deleted")
	}
}
