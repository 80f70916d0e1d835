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

func TestANewTemplateCostsOnePatchAndOneCreate(t *testing.T) {
	h := newHouse(t, deployment(2), propagation("p"))
	_, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "of the first pass", writes, "patch Deployment", "create ResourceBinding")

	template, bound := h.template(), h.binding()
	if claimOn(template) != "id-p" || claimOn(bound) != "id-p" {
		t.Errorf("claims: template %q, binding %q", claimOn(template), claimOn(bound))
	}
	if binding.PermanentID(bound) == "" || len(bound.Finalizers) != 1 || !metav1.IsControlledBy(bound, template) {
		t.Errorf("not created whole: labels %v, finalizers %v, owners %v", bound.Labels, bound.Finalizers, bound.OwnerReferences)
	}
	if bound.Spec.Replicas != 2 || bound.Spec.Resource.ResourceVersion != template.GetResourceVersion() {
		t.Errorf("replicas %d, resourceVersion %s of %s", bound.Spec.Replicas, bound.Spec.Resource.ResourceVersion, template.GetResourceVersion())
	}
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "when all is in order", writes)

	template = template.DeepCopy()
	template.Object["spec"] = map[string]any{"replicas": int64(5)}
	h.change(template)
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "when the template changed", writes, "patch ResourceBinding")
	if got := h.binding().Spec.Replicas; got != 5 {
		t.Errorf("replicas %d", got)
	}
}

func TestAWaitingTemplateIsFoundByANewPolicy(t *testing.T) {
	h := newHouse(t, deployment(1))
	if _, writes := h.pass(policy.TemplateChanged); len(writes) != 0 {
		t.Fatalf("wrote %v without a policy", writes)
	}
	h.policies.put(propagation("p"))
	if err := h.spread(t.Context(), propagation("p")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]request{{web, policy.PolicyChanged}}, h.queued(), cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Fatalf("queued (-want +got):\n%s", diff)
	}
	_, writes := h.pass(policy.PolicyChanged)
	expectWrites(t, "once there is a policy", writes, "patch Deployment", "create ResourceBinding")
	if got := h.waiting.within(area{kind: deployments}); len(got) != 0 {
		t.Errorf("%v still wait", got)
	}
}

func TestATemplateIsReleasedWhenItsPolicySelectsItNoLonger(t *testing.T) {
	p := propagation("p")
	h := newHouse(t, deployment(1), p, clusterPropagation("fallback"))
	h.pass(policy.TemplateChanged)
	narrowed := &policyv1alpha1.PropagationPolicy{}
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(p), narrowed); err != nil {
		t.Fatal(err)
	}
	narrowed.Spec.ResourceSelectors = selectors("another")
	h.change(narrowed)

	_, writes := h.pass(policy.PolicyChanged)
	expectWrites(t, "of the release, binding first", writes, "patch ResourceBinding", "patch Deployment")
	if claimOn(h.template()) != "" || claimOn(h.binding()) != "" {
		t.Fatalf("claims: template %q, binding %q", claimOn(h.template()), claimOn(h.binding()))
	}
	h.pass(policy.TemplateChanged)
	if claimOn(h.template()) != "id-fallback" || claimOn(h.binding()) != "id-fallback" {
		t.Errorf("claims after the next match: template %q, binding %q", claimOn(h.template()), claimOn(h.binding()))
	}
}

func TestAPolicyThatIsOnlyUnseenReleasesNothing(t *testing.T) {
	p := propagation("p")
	h := newHouse(t, deployment(1), p)
	h.pass(policy.TemplateChanged)
	h.policies.delete(p) // as in a view that is behind
	result, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "while the policy exists", writes)
	if result.RequeueAfter != patience {
		t.Errorf("it looks again after %s", result.RequeueAfter)
	}
	if err := h.karmada.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := h.karmada.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h.pass(policy.TemplateChanged)
	if claimOn(h.template()) != "" || claimOn(h.binding()) != "" {
		t.Errorf("claims of a policy that is gone: template %q, binding %q", claimOn(h.template()), claimOn(h.binding()))
	}
}

func TestADeletedPolicyLetsGoAndThenGoes(t *testing.T) {
	p := propagation("p")
	h := newHouse(t, deployment(1), p)
	h.pass(policy.TemplateChanged)
	if err := h.karmada.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h.writes = nil
	r := &policyReconciler{detector: h.detector, scope: scopes[0]}
	if _, err := r.Reconcile(t.Context(), requestFor(p)); err != nil {
		t.Fatal(err)
	}
	expectWrites(t, "of the deletion", h.writes, "patch ResourceBinding", "patch Deployment", "patch PropagationPolicy")
	if err := h.karmada.Get(t.Context(), client.ObjectKeyFromObject(p), &policyv1alpha1.PropagationPolicy{}); !apierrors.IsNotFound(err) {
		t.Errorf("the policy is still there: %v", err)
	}
	if claimOn(h.template()) != "" || h.binding() == nil || claimOn(h.binding()) != "" {
		t.Error("the binding has to stay, without a claim on it or on the template")
	}
}

func TestATemplateWaitsForTheOverridesOfItsPolicy(t *testing.T) {
	p := propagation("p")
	p.Spec.DependentOverrides = []string{"o"}
	h := newHouse(t, deployment(1), p)
	if _, writes := h.pass(policy.TemplateChanged); len(writes) != 0 {
		t.Fatalf("wrote %v before the override exists", writes)
	}
	override := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}}
	if err := h.karmada.Create(t.Context(), override); err != nil {
		t.Fatal(err)
	}
	h.entrance.onOverrides().OnAdd(override, false)
	if diff := cmp.Diff([]request{{web, policy.TemplateChanged}}, h.queued(), cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Fatalf("woken (-want +got):\n%s", diff)
	}
	_, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "once the override exists", writes, "patch Deployment", "create ResourceBinding")
}

func TestALazyPolicyOnlyClaimsWhatWasWaiting(t *testing.T) {
	p := propagation("p")
	p.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	h := newHouse(t, deployment(1), p)
	_, writes := h.pass(policy.PolicyChanged)
	expectWrites(t, "because of the policy", writes, "patch Deployment")
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "because of our own claim", writes)

	template := h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(3)}
	h.change(template)
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "because of the user", writes, "patch Deployment", "create ResourceBinding")
	if got := h.template().GetAnnotations()[policy.UserStateAnnotation]; got != "" {
		t.Errorf("the template still says that it was not acted upon: %q", got)
	}
	_, writes = h.pass(policy.TemplateChanged)
	expectWrites(t, "afterwards", writes)
}

func TestALazyPolicyTakesOverABindingWithoutTouchingItsSpec(t *testing.T) {
	lazy := propagation("lazy")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	lazy.Spec.PropagateDeps = true
	first := propagation("first")
	h := newHouse(t, deployment(1), first)
	h.pass(policy.TemplateChanged)
	h.policies.put(lazy)
	template := h.template()
	policy.ClaimOf(lazy).Apply(template)
	h.change(template)

	h.pass(policy.PolicyChanged)
	h.pass(policy.TemplateChanged)
	if h.binding().Spec.PropagateDeps || claimOn(h.binding()) != "id-first" {
		t.Fatal("the binding follows before the user changed anything")
	}
	template = h.template()
	template.Object["spec"] = map[string]any{"replicas": int64(3)}
	h.change(template)
	h.pass(policy.TemplateChanged)
	if !h.binding().Spec.PropagateDeps || claimOn(h.binding()) != "id-lazy" {
		t.Error("the binding does not follow the user's change")
	}
}

func TestPreemption(t *testing.T) {
	preemptor := propagation("strong")
	preemptor.Spec.Preemption = policyv1alpha1.PreemptAlways
	for name, on := range map[string]bool{"a template is taken when the feature is on": true, "nothing is taken when it is off": false} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, deployment(1), clusterPropagation("weak"))
			h.options.Preemption = on
			h.pass(policy.TemplateChanged)
			h.policies.put(preemptor)
			if err := h.preempt(t.Context(), preemptor); err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "id-strong", false: "id-weak"}[on]
			if got := claimOn(h.template()); got != want {
				t.Errorf("claimed by %q, want %q", got, want)
			}
			h.pass(policy.TemplateChanged)
			if got := claimOn(h.binding()); got != want {
				t.Errorf("the binding is claimed by %q, want %q", got, want)
			}
		})
	}
}

func TestABindingOfAnEarlierTemplateIsWaitedFor(t *testing.T) {
	h := newHouse(t, deployment(1), propagation("p"))
	h.pass(policy.TemplateChanged)
	if err := h.karmada.Delete(t.Context(), h.template()); err != nil {
		t.Fatal(err)
	}
	again := deployment(1)
	again.SetUID("uid-again")
	if err := h.karmada.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	result, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "while the old binding is there", writes, "patch Deployment")
	if result.RequeueAfter <= 0 || result.RequeueAfter > 5*time.Second {
		t.Errorf("it looks again after %s", result.RequeueAfter)
	}
	h.entrance.onBindings().OnDelete(h.binding())
	if len(h.queued()) != 1 {
		t.Error("the end of the old binding wakes nobody")
	}
}

func TestALeftoverClaimOnABindingIsRemoved(t *testing.T) {
	h := newHouse(t, deployment(1), propagation("p"))
	h.pass(policy.TemplateChanged)
	template := h.template()
	claim, _ := policy.ClaimedBy(template)
	claim.Remove(template)
	h.change(template)
	h.policies.delete(propagation("p"))
	_, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "without a policy", writes, "patch ResourceBinding")
	if got := claimOn(h.binding()); got != "" {
		t.Errorf("the binding is still claimed by %q", got)
	}
}

func TestATerminatingTemplateGetsNoNewBinding(t *testing.T) {
	dying := deployment(1)
	dying.SetFinalizers([]string{"example.com/keep"})
	h := newHouse(t, dying, propagation("p"))
	if err := h.karmada.Delete(t.Context(), h.template()); err != nil {
		t.Fatal(err)
	}
	h.pass(policy.TemplateChanged)
	if h.binding() != nil {
		t.Error("a binding was made for a template that goes")
	}
}
