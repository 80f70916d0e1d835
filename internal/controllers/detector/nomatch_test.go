package detector

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/event"

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
	h.noMatchGrace = time.Hour
	h.reconcile(policy.TemplateChanged)
	expectEvents(t, "at first", h.takeEvents())
	h.noMatchGrace = 0
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
	if err := h.enqueueTemplatesOf(t.Context(), typo); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]templateRequest{{webRef, policy.PolicyChanged}}, h.takeQueue(), cmp.AllowUnexported(templateRequest{}, templateRef{})); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	h.reconcile(policy.PolicyChanged)
	expectEvents(t, "of the near miss", h.takeEvents(), "Warning ApplyPolicyFailed")
}

func TestNearMissesOfWaitingTemplates(t *testing.T) {
	w := newWaitingTemplates()
	for _, name := range []string{"b", "a"} {
		w.add(refNamed(deployments, "shop", name), nil)
		w.add(refNamed(deployments, "dev", name), nil)
		w.add(refNamed(configMaps, "shop", name), nil)
	}
	if diff := cmp.Diff([]templateRef{refNamed(deployments, "shop", "a"), refNamed(deployments, "shop", "b")}, w.nearMisses(propagationPolicy("p")), cmp.AllowUnexported(templateRef{})); diff != "" {
		t.Errorf("near (-want +got):\n%s", diff)
	}
	for i := range 2 * maxNearMisses {
		w.add(refNamed(deployments, "shop", fmt.Sprintf("b%d", i)), nil)
	}
	w.add(refNamed(deployments, "shop", "wed"), nil)
	got := w.nearMisses(propagationPolicy("p"))
	if len(got) != maxNearMisses || got[0].key.Name != "wed" {
		t.Errorf("near misses: %d templates, %v first; want at most %d, the nearest first", len(got), got[0], maxNearMisses)
	}
}

func TestSelectorWithMatchHasNoNearMisses(t *testing.T) {
	tests := map[string]struct {
		waiting, claimed []string
		want             []string
	}{
		"the selected object is waiting":       {waiting: []string{"web", "api"}},
		"the object belongs to another policy": {waiting: []string{"api"}, claimed: []string{"web"}},
		"there is no such object":              {waiting: []string{"api"}, claimed: []string{"db"}, want: []string{"Deployment shop/api"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			p := propagationPolicy("p")
			selected := sets.New[templateRef]()
			for _, name := range test.waiting {
				h.waitingTemplates.add(refNamed(deployments, "shop", name), nil)
			}
			for _, filter := range filtersOf(p) {
				selected.Insert(h.waitingTemplates.matching(filter)...)
			}
			for _, name := range test.claimed {
				template := deployment(1)
				policy.ClaimOf(propagationPolicy("other")).Apply(template)
				h.claims.update(refNamed(deployments, "shop", name), template)
			}
			var got []string
			for _, r := range h.nearMisses(p, selected) {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("near (-want +got):\n%s", diff)
			}
		})
	}
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
			h.initialTemplates.setStartTime(started)
			h.onTemplates(deployments).Create(t.Context(), event.TypedCreateEvent[*unstructured.Unstructured]{Object: template, IsInInitialList: test.initial}, h.queue)
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
