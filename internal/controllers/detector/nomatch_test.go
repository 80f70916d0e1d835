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

func propagationOf(name, template string) *policyv1alpha1.PropagationPolicy {
	p := propagation(name)
	p.Spec.ResourceSelectors = selectors(template)
	return p
}

func TestATemplateThatNoPolicyMatchesIsReportedOnce(t *testing.T) {
	h := newHouse(t, deployment(1), propagationOf("typo", "web2"))
	_, writes := h.pass(policy.TemplateChanged)
	expectWrites(t, "without a match", writes)
	want := []string{`Warning ApplyPolicyFailed No policy match for resource: PropagationPolicy shop/typo comes nearest: selects name "web2", not "web"`}
	if diff := cmp.Diff(want, h.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	h.pass(policy.TemplateChanged)
	h.pass(policy.PolicyChanged)
	expectTold(t, "of what is known", h.told())

	h.policies.put(propagationOf("typo", "wbe"))
	h.pass(policy.PolicyChanged)
	expectTold(t, "of another cause", h.told(), "Warning ApplyPolicyFailed")

	h.policies.put(propagation("right"))
	h.pass(policy.PolicyChanged)
	expectTold(t, "of the match", h.told(), "Normal ApplyPolicySucceed")
}

func TestATemplateThatHasJustComeIsReportedAfterAGrace(t *testing.T) {
	h := newHouse(t, deployment(1), propagationOf("typo", "web2"))
	h.noMatchGrace = time.Hour
	h.pass(policy.TemplateChanged)
	expectTold(t, "at first", h.told())
	h.noMatchGrace = 0
	h.pass(policy.PolicyChanged)
	expectTold(t, "after the grace", h.told(), "Warning ApplyPolicyFailed")
}

func TestATemplateThatNobodyMeantIsNotReported(t *testing.T) {
	h := newHouse(t, deployment(1))
	h.pass(policy.TemplateChanged)
	expectTold(t, "without policies", h.told())
}

func TestAPolicyThatComesNearReportsWaitingTemplates(t *testing.T) {
	h := newHouse(t, deployment(1))
	h.pass(policy.TemplateChanged)
	typo := propagationOf("typo", "web2")
	h.policies.put(typo)
	if err := h.spread(t.Context(), typo); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]request{{web, policy.PolicyChanged}}, h.queued(), cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	h.pass(policy.PolicyChanged)
	expectTold(t, "of the policy that comes near", h.told(), "Warning ApplyPolicyFailed")
}

func TestWaitingTemplatesThatAPolicyComesNear(t *testing.T) {
	w := newWaiting()
	for _, name := range []string{"b", "a"} {
		w.add(named(deployments, "shop", name), nil)
		w.add(named(deployments, "dev", name), nil)
		w.add(named(configMaps, "shop", name), nil)
	}
	if diff := cmp.Diff([]reference{named(deployments, "shop", "a"), named(deployments, "shop", "b")}, w.near(propagation("p")), cmp.AllowUnexported(reference{})); diff != "" {
		t.Errorf("near (-want +got):\n%s", diff)
	}
	for i := range 2 * maxNear {
		w.add(named(deployments, "shop", fmt.Sprintf("b%d", i)), nil)
	}
	w.add(named(deployments, "shop", "wed"), nil)
	got := w.near(propagation("p"))
	if len(got) != maxNear || got[0].key.Name != "wed" {
		t.Errorf("a policy looks at %d templates, %v first; want %d at most, the nearest first", len(got), got[0], maxNear)
	}
}

func TestASelectorThatSelectsSomethingComesNearNothingElse(t *testing.T) {
	tests := map[string]struct {
		waiting, claimed []string
		want             []string
	}{
		"the object waits":                     {waiting: []string{"web", "api"}},
		"the object belongs to another policy": {waiting: []string{"api"}, claimed: []string{"web"}},
		"there is no such object":              {waiting: []string{"api"}, claimed: []string{"db"}, want: []string{"Deployment shop/api"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			p := propagation("p")
			reached := sets.New[reference]()
			for _, name := range test.waiting {
				h.waiting.add(named(deployments, "shop", name), nil)
			}
			for _, where := range reaches(p) {
				reached.Insert(h.waiting.within(where)...)
			}
			for _, name := range test.claimed {
				template := deployment(1)
				policy.ClaimOf(propagation("other")).Apply(template)
				h.claims.observe(named(deployments, "shop", name), template)
			}
			var got []string
			for _, r := range h.near(p, reached) {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("near (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOldTemplatesAreNotReportedAgainAfterARestart(t *testing.T) {
	started := time.Unix(100_000, 0)
	tests := map[string]struct {
		age     time.Duration
		initial bool
		want    []string
	}{
		"an old one that was there at the start": {time.Hour, true, nil},
		"a new one that was there at the start":  {time.Minute, true, []string{"Warning ApplyPolicyFailed"}},
		"one that came later":                    {0, false, []string{"Warning ApplyPolicyFailed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := deployment(1)
			template.SetCreationTimestamp(metav1.NewTime(started.Add(-test.age)))
			h := newHouse(t, template, propagationOf("typo", "web2"))
			h.listed.start(started)
			h.onTemplates(deployments).Create(t.Context(), event.TypedCreateEvent[*unstructured.Unstructured]{Object: template, IsInInitialList: test.initial}, h.queue)
			h.pass(policy.TemplateChanged)
			expectTold(t, name, h.told(), test.want...)
			changed := h.template()
			changed.SetLabels(map[string]string{"app": "web"})
			h.change(changed)
			h.pass(policy.TemplateChanged)
			if test.want == nil {
				expectTold(t, "when the user changes it", h.told(), "Warning ApplyPolicyFailed")
			}
		})
	}
}
