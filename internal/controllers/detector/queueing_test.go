package detector

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func TestOwnClaimWriteQueuesNothing(t *testing.T) {
	h := newFixture(t, deployment(1), propagationPolicy("p"))
	before := h.template()
	h.reconcile(policy.TemplateChanged)
	claimed := h.template()
	handler := h.templateTriggers.newTemplateHandler(deployments)
	update := func(from, to *unstructured.Unstructured) []templateRequest {
		handler.OnUpdate(from, to)
		return h.takeQueue()
	}
	if got := update(before, claimed); len(got) != 0 {
		t.Errorf("our own claim write queued %v", got)
	}
	if diff := cmp.Diff([]templateRef{webRef}, h.claims.templatesOf("id-p")); diff != "" {
		t.Errorf("indexed claims (-want +got):\n%s", diff)
	}
	if got := update(before, claimed); len(got) != 1 {
		t.Errorf("the same change by another client queued %v", got)
	}
	h.claimWrites.expect(webRef, claimed, h.policies.get("shop", "p"))
	h.policies.put(propagationPolicy("p"))
	if got := update(before, claimed); len(got) != 1 {
		t.Errorf("our claim for a policy that changed since queued %v", got)
	}
	h.claimWrites.expect(webRef, claimed, h.policies.get("shop", "p"))
	scaled := claimed.DeepCopy()
	scaled.Object["spec"] = map[string]any{"replicas": int64(9)}
	if got := update(before, scaled); len(got) != 1 {
		t.Errorf("our claim together with a change by a user queued %v", got)
	}
}

func TestDeletedPolicyWithoutFinalizerQueuesItsTemplates(t *testing.T) {
	p := propagationPolicy("p")
	h := newFixture(t, deployment(1), p)
	h.reconcile(policy.TemplateChanged)
	h.claims.update(webRef, h.template())
	h.policyTriggers[0].newPolicyHandler(nil).OnDelete(p)
	if diff := cmp.Diff([]templateRequest{webRef.request(policy.TemplateChanged)}, h.takeQueue()); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
}

func TestRecreatedPolicyQueuesTemplatesOfEarlierPolicy(t *testing.T) {
	p := propagationPolicy("p")
	h := newFixture(t, deployment(1), p)
	h.reconcile(policy.TemplateChanged)
	h.claims.update(webRef, h.template())
	recreated := propagationPolicy("p")
	recreated.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-recreated"}
	policies := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(policies.ShutDown)
	h.policyTriggers[0].newPolicyHandler(policies).OnUpdate(p, recreated)
	if diff := cmp.Diff([]templateRequest{webRef.request(policy.TemplateChanged)}, h.takeQueue()); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	h.reconcile(policy.TemplateChanged)
	if claim, _ := policy.ClaimedBy(h.binding()); claim != policy.ClaimOf(recreated) {
		t.Errorf("the binding is claimed by %+v", claim)
	}
}

func TestNewPolicyQueuesOnlySelectedWaitingTemplates(t *testing.T) {
	h := newFixture(t)
	for i := range 10_000 {
		h.waiting.add(newRef(deployments, "shop", fmt.Sprintf("web-%d", i)), map[string]string{"app": fmt.Sprintf("web-%d", i)})
	}
	p := propagationPolicy("p")
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{
		APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web-77"}},
	}}
	if err := h.policyReconcilers[0].enqueueTemplatesOf(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	want := []templateRequest{newRef(deployments, "shop", "web-77").request(policy.PolicyChanged)}
	if diff := cmp.Diff(want, h.takeQueue()); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
}
