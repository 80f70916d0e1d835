package binding

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

// newOverridePolicy returns an OverridePolicy in namespace shop with one rule for some clusters.
func newOverridePolicy(name string, patch policyv1alpha1.PlaintextOverrider, clusters ...string) *policyv1alpha1.OverridePolicy {
	made := &policyv1alpha1.OverridePolicy{}
	made.Namespace, made.Name = "shop", name
	made.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{
		TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters},
		Overriders:    policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{patch}},
	}}
	return made
}

func invalidOverride(clusters ...string) *policyv1alpha1.OverridePolicy {
	return newOverridePolicy("mistake", policyv1alpha1.PlaintextOverrider{Path: "/spec/nowhere", Operator: policyv1alpha1.OverriderOpRemove}, clusters...)
}

const invalidOverrideMessage = `applying OverridePolicy "shop/mistake", spec.overrideRules[0].overriders.plaintext[0] at "/spec/nowhere": ` +
	`there is no field "/spec/nowhere"; drop the entry, or select only resources that have the field`

func TestOverrideErrorIsReportedOncePerCluster(t *testing.T) {
	w := newFixture(t, cluster("m1"), cluster("m2"), cluster("m3"), deployment(), bindingTo("m1", "m2", "m3"), invalidOverride("m1", "m3"))
	result, _ := w.reconcile()
	if result.RequeueAfter != blockedRetryDelay {
		t.Errorf("requeued after %v", result.RequeueAfter)
	}
	if diff := cmp.Diff([]string{"m2"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	want := map[string]string{"m1": "Deployment shop/web: " + invalidOverrideMessage, "m3": "Deployment shop/web: " + invalidOverrideMessage}
	if diff := cmp.Diff(want, w.recordedFailures()); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	events := []string{
		"Warning SyncWorkFailed clusters m1, m3: " + invalidOverrideMessage,            // on the binding
		"Warning ApplyOverridePolicyFailed clusters m1, m3: " + invalidOverrideMessage, // on the template
	}
	if diff := cmp.Diff(events, w.takeEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if _, requests := w.reconcile(); len(requests) != 0 {
		t.Errorf("the next reconcile sent %v", requests)
	}
	if again := w.takeEvents(); len(again) != 0 {
		t.Errorf("the next reconcile recorded %v", again)
	}
}

func TestFailureIsRemovedWhenResolved(t *testing.T) {
	ends := map[string]func(*fixture) error{
		"the override policy is deleted": func(w *fixture) error { return w.store.Delete(t.Context(), invalidOverride()) },
		"the cluster is not a target any more": func(w *fixture) error {
			w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })
			return nil
		},
		"the template is deleted": func(w *fixture) error { return w.store.Delete(t.Context(), deployment()) },
		"the binding is deleted":  func(w *fixture) error { return w.store.Delete(t.Context(), bindingTo()) },
		"the binding is deleted without its finalizer": func(w *fixture) error {
			w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
			return w.store.Delete(t.Context(), bindingTo())
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"), invalidOverride("m1"))
			w.reconcile()
			if len(w.recordedFailures()) != 1 {
				t.Fatal("the failure is not reported")
			}
			if err := end(w); err != nil {
				t.Fatal(err)
			}
			w.reconcile()
			if left := w.recordedFailures(); len(left) != 0 {
				t.Errorf("still reported: %v", left)
			}
		})
	}
}

// failingReviseRules return an error when replicas are set.
type failingReviseRules struct{}

func (failingReviseRules) Rules(schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{ReviseReplicas: func(
		context.Context, *unstructured.Unstructured, int64,
	) (*unstructured.Unstructured, error) {
		return nil, errors.New("the script ended with an error")
	}}
}

func TestInterpreterErrorIsReportedAndRetried(t *testing.T) {
	bound := bindingTo("m1")
	bound.Spec.Replicas = 2
	w := newFixture(t, cluster("m1"), deployment(), bound)
	w.rules = failingReviseRules{}
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)}); err == nil {
		t.Error("the failure is not retried")
	}
	failure := w.recordedFailures()["m1"]
	for _, part := range []string{"Deployment shop/web", "setting 0 replicas", "the script ended with an error"} {
		if !strings.Contains(failure, part) {
			t.Errorf("%q does not say %q", failure, part)
		}
	}
	for _, event := range w.takeEvents() {
		if !strings.HasPrefix(event, "Warning SyncWorkFailed ") {
			t.Errorf("recorded %q", event)
		}
	}
}

// revisingWith is a rule that returns an error.
type revisingWith struct{ err error }

func (r revisingWith) Rules(schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{ReviseReplicas: func(
		_ context.Context, template *unstructured.Unstructured, _ int64,
	) (*unstructured.Unstructured, error) {
		return template, r.err
	}}
}

func TestRuleThatDidNotRunChangesNoReport(t *testing.T) {
	bound := bindingTo("m1", "m2")
	bound.Spec.Replicas = 2
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bound)
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)}
	for _, err := range []error{errors.New("line 3"), &interpreter.BusyError{Text: "8 calls run"}, errors.New("line 3")} {
		w.rules = revisingWith{err}
		if _, got := w.Reconcile(t.Context(), request); !errors.Is(got, err) {
			t.Errorf("error %v is not retried, but %v", err, got)
		}
		for cluster, failure := range w.recordedFailures() {
			if !strings.Contains(failure, "line 3") {
				t.Errorf("after %v: cluster %s has the failure %q", err, cluster, failure)
			}
		}
	}
	if events := w.takeEvents(); len(events) != 2 {
		t.Errorf("recorded %d events, want one for the binding and one for the template: %q", len(events), events)
	}
}

func TestTemplateEvents(t *testing.T) {
	paint := newOverridePolicy("paint", policyv1alpha1.PlaintextOverrider{
		Path: "/metadata/labels/color", Operator: policyv1alpha1.OverriderOpAdd, Value: policyv1alpha1.JSON{Raw: []byte(`"red"`)},
	}, "m1")
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"))
	expectEvents := func(when string, want ...string) {
		t.Helper()
		w.reconcile()
		if diff := cmp.Diff(want, w.takeEvents()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expectEvents("scheduled")
	expectEvents("without a change")
	if err := w.store.Create(t.Context(), paint); err != nil {
		t.Fatal(err)
	}
	expectEvents("overridden", "Normal ApplyOverridePolicySucceed Overrides were applied for 1 cluster.")
	expectEvents("without a change of the override")
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = b.Spec.Clusters[:1] })
	expectEvents("one cluster fewer")
	w.rules = failingReviseRules{}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas, b.Spec.Clusters[0].Replicas = 2, 2 })
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web-deployment"}}); err == nil {
		t.Fatal("the interpreter error is not returned")
	}
	w.takeEvents()
	w.rules = noRules{}
	expectEvents("recovered", "Normal SyncWorkSucceed All Works of binding web-deployment are up to date again.")
}

func TestSummarize(t *testing.T) {
	in := func(cluster, cause string) error { return &clusterError{cluster, errors.New(cause)} }
	cases := map[string]struct {
		failures []error
		want     string
	}{
		"one cluster":                 {[]error{in("m1", "forbidden")}, "cluster m1: forbidden"},
		"several with one cause":      {[]error{in("m1", "forbidden"), in("m2", "forbidden")}, "clusters m1, m2: forbidden"},
		"several with several causes": {[]error{in("m1", "a"), in("m2", "b"), in("m3", "a")}, "clusters m1, m3: a\ncluster m2: b"},
		"no cluster":                  {[]error{errors.New("listing")}, "listing"},
		"no cluster among others":     {[]error{in("m1", "forbidden"), errors.New("listing")}, "cluster m1: forbidden\nlisting"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := summarize(tc.failures); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOverriderWithoutContainerIsReportedOnce(t *testing.T) {
	policy := newOverridePolicy("check", policyv1alpha1.PlaintextOverrider{Path: "/metadata/labels/tier", Operator: policyv1alpha1.OverriderOpAdd, Value: policyv1alpha1.JSON{Raw: []byte(`"edge"`)}}, "m1", "m2")
	policy.Spec.OverrideRules[0].Overriders.ArgsOverrider = []policyv1alpha1.CommandArgsOverrider{{ContainerName: "nginx", Operator: policyv1alpha1.OverriderOpAdd}}
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"), policy)
	w.reconcile()
	want := []string{
		"Normal ApplyOverridePolicySucceed Overrides were applied for 2 clusters.",
		`Warning OverrideWithoutEffect OverridePolicy "shop/check", spec.overrideRules[0].overriders.argsOverrider[0]: Deployment shop/web has no container "nginx"; it has none`,
	}
	if diff := cmp.Diff(want, w.takeEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.reconcile()
	if again := w.takeEvents(); len(again) != 0 {
		t.Errorf("the next reconcile recorded %v", again)
	}
}

// The Work changes only in its annotations.
func TestOverriderWithoutEffectOnExistingWorkIsReported(t *testing.T) {
	policy := newOverridePolicy("check", policyv1alpha1.PlaintextOverrider{}, "m2")
	policy.Spec.OverrideRules[0].Overriders = policyv1alpha1.Overriders{ArgsOverrider: []policyv1alpha1.CommandArgsOverrider{{ContainerName: "nginx", Operator: policyv1alpha1.OverriderOpAdd}}}
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"), policy)
	w.reconcile()
	if events := w.takeEvents(); len(events) != 0 {
		t.Fatalf("events for a rule of another cluster: %v", events)
	}
	policy.Spec.OverrideRules[0].TargetCluster.ClusterNames = []string{"m1"}
	w.update(policy)
	w.reconcile()
	want := []string{`Warning OverrideWithoutEffect OverridePolicy "shop/check", spec.overrideRules[0].overriders.argsOverrider[0]: Deployment shop/web has no container "nginx"; it has none`}
	if diff := cmp.Diff(want, w.takeEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
