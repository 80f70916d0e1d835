package detector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

func policySelecting(name, template string) *policyv1alpha1.PropagationPolicy {
	p := propagationPolicy(name)
	p.Spec.ResourceSelectors = selectors(template)
	return p
}

func TestUnmatchedTemplateIsReportedOnce(t *testing.T) {
	h := newFixture(t, deployment(1), policySelecting("typo", "web2"))
	_, writes := h.reconcile(policy.TemplateChanged)
	expectWrites(t, "without a match", writes)
	want := []string{`Warning ApplyPolicyFailed No policy match for resource: PropagationPolicy shop/typo comes nearest: selects name "web2", not "web"`}
	if diff := cmp.Diff(want, h.takeEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	h.reconcile(policy.TemplateChanged)
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "of the same cause", h.takeEvents())

	h.policies.put(policySelecting("typo", "wbe"))
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "of another cause", h.takeEvents(), "Warning ApplyPolicyFailed")

	h.policies.put(propagationPolicy("right"))
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "of the match", h.takeEvents(), "Normal ApplyPolicySucceed")
}

func TestNewUnmatchedTemplateIsReportedAfterGracePeriod(t *testing.T) {
	h := newFixture(t, deployment(1), policySelecting("typo", "web2"))
	h.templateReconciler.noMatch.grace = time.Hour
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "at first", h.takeEvents())
	h.templateReconciler.noMatch.grace = 0
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "after the grace period", h.takeEvents(), "Warning ApplyPolicyFailed")
}

func TestUnmatchedTemplateWithoutNearMissIsNotReported(t *testing.T) {
	h := newFixture(t, deployment(1))
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "without policies", h.takeEvents())
}

func TestNearMissReportsWaitingTemplates(t *testing.T) {
	h := newFixture(t, deployment(1))
	h.reconcile(policy.TemplateChanged)
	typo := policySelecting("typo", "web2")
	h.policies.put(typo)
	if err := h.policyReconcilers[0].enqueueTemplatesOf(t.Context(), typo); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]templateRequest{webRef.request(policy.PolicyChanged)}, h.takeQueue()); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "of the near miss", h.takeEvents(), "Warning ApplyPolicyFailed")
}

func TestOldUnmatchedTemplatesAreNotReportedAfterRestart(t *testing.T) {
	started := time.Unix(100_000, 0)
	tests := map[string]struct {
		age     time.Duration
		initial bool
		want    []string
	}{
		"an old template of the initial list": {time.Hour, true, nil},
		"a new template of the initial list":  {time.Minute, true, []string{"Warning ApplyPolicyFailed"}},
		"a template created later":            {0, false, []string{"Warning ApplyPolicyFailed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := deployment(1)
			template.SetCreationTimestamp(metav1.NewTime(started.Add(-test.age)))
			h := newFixture(t, template, policySelecting("typo", "web2"))
			h.initial.setStartTime(started)
			h.templateTriggers.newTemplateHandler(deployments).OnAdd(template, test.initial)
			h.reconcile(policy.TemplateChanged)
			expectEvents(t, name, h.takeEvents(), test.want...)
			changed := h.template()
			changed.SetLabels(map[string]string{"app": "web"})
			h.update(changed)
			h.reconcile(policy.TemplateChanged)
			if test.want == nil {
				expectEvents(t, "when the user changes it", h.takeEvents(), "Warning ApplyPolicyFailed")
			}
		})
	}
}
