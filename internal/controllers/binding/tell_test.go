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
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/interpreter"
)

// overriding is an OverridePolicy in namespace shop with one rule for some clusters.
func overriding(name string, patch policyv1alpha1.PlaintextOverrider, clusters ...string) *policyv1alpha1.OverridePolicy {
	made := &policyv1alpha1.OverridePolicy{}
	made.Namespace, made.Name = "shop", name
	made.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{
		TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters},
		Overriders:    policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{patch}},
	}}
	return made
}

func mistake(clusters ...string) *policyv1alpha1.OverridePolicy {
	return overriding("mistake", policyv1alpha1.PlaintextOverrider{Path: "/spec/nowhere", Operator: policyv1alpha1.OverriderOpRemove}, clusters...)
}

const saysMistake = `applying OverridePolicy "shop/mistake", spec.overrideRules[0].overriders.plaintext[0] at "/spec/nowhere": ` +
	`there is no field "/spec/nowhere"; drop the entry, or select only resources that have the field`

func TestAMistakeInAnOverridePolicyIsToldOnceOfEachClusterAndHoldsUpNoOther(t *testing.T) {
	w := newWorld(t, cluster("m1"), cluster("m2"), cluster("m3"), deployment(), bindingTo("m1", "m2", "m3"), mistake("m1", "m3"))
	result, _ := w.pass()
	if result.RequeueAfter != waitRetry {
		t.Errorf("requeued after %v", result.RequeueAfter)
	}
	if diff := cmp.Diff([]string{"m2"}, w.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	want := map[string]string{"m1": "Deployment shop/web: " + saysMistake, "m3": "Deployment shop/web: " + saysMistake}
	if diff := cmp.Diff(want, w.failures.Of("binding-1")); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	events := []string{
		"Warning SyncWorkFailed clusters m1, m3: " + saysMistake,            // on the binding
		"Warning ApplyOverridePolicyFailed clusters m1, m3: " + saysMistake, // on the template
	}
	if diff := cmp.Diff(events, w.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if _, requests := w.pass(); len(requests) != 0 {
		t.Errorf("the next pass asked for %v", requests)
	}
	if again := w.told(); len(again) != 0 {
		t.Errorf("the next pass told %v", again)
	}
}

func TestAFailureIsTakenBackWhenItIsOver(t *testing.T) {
	ends := map[string]func(*world) error{
		"the mistake is gone": func(w *world) error { return w.store.Delete(t.Context(), mistake()) },
		"the cluster is no target any more": func(w *world) error {
			w.change(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })
			return nil
		},
		"the template is gone":   func(w *world) error { return w.store.Delete(t.Context(), deployment()) },
		"the binding is deleted": func(w *world) error { return w.store.Delete(t.Context(), bindingTo()) },
		"the binding is gone": func(w *world) error {
			w.change(func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
			return w.store.Delete(t.Context(), bindingTo())
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"), mistake("m1"))
			w.pass()
			if len(w.failures.Of("binding-1")) != 1 {
				t.Fatal("the failure is not told")
			}
			if err := end(w); err != nil {
				t.Fatal(err)
			}
			w.pass()
			if left := w.failures.Of("binding-1"); len(left) != 0 {
				t.Errorf("still told: %v", left)
			}
		})
	}
}

func TestAFailureOfABindingThatIsReplacedIsNotThatOfItsSuccessor(t *testing.T) {
	failures := report.NewRenderings()
	f := newFailing(failures)
	before, after := bindingTo("m1"), bindingTo("m1")
	after.UID = "binding-2"
	f.set(before, map[string]string{"m1": "refused"})
	f.set(after, map[string]string{"m1": "refused too"})
	if left := failures.Of("binding-1"); len(left) != 0 {
		t.Errorf("still told: %v", left)
	}
	f.forget(types.NamespacedName{Namespace: "shop", Name: "web-deployment"})
	if left := failures.Of("binding-2"); len(left) != 0 {
		t.Errorf("still told: %v", left)
	}
}

func TestAGenerationIsConcludedWhenEveryClusterHasItsWorkOrAFailure(t *testing.T) {
	failed := &clusterError{"m1", errors.New("refused")}
	for name, tc := range map[string]struct {
		failures []error
		want     int64
	}{
		"all have their Works":              {nil, 7},
		"those that do not are told why":    {[]error{failed}, 7},
		"one is decided upon an old view":   {[]error{failed, &clusterError{"m2", errLag}}, 0},
		"nothing could be decided upon yet": {[]error{errors.New("the template cannot be read")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			failures, bound := report.NewRenderings(), bindingTo("m1")
			bound.Generation = 7
			newFailing(failures).conclude(bound, tc.failures)
			if got := failures.Concluded(client.ObjectKeyFromObject(bound), bound.UID); got != tc.want {
				t.Errorf("concluded in generation %d, want %d", got, tc.want)
			}
		})
	}
}

// cannotRevise are rules by which replicas cannot be set.
type cannotRevise struct{}

func (cannotRevise) Rules(schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{Revise: func(
		context.Context, *unstructured.Unstructured, int64,
	) (*unstructured.Unstructured, error) {
		return nil, errors.New("the script ended with an error")
	}}
}

func TestAnInterpreterThatFailsIsToldOfEveryClusterAndRetried(t *testing.T) {
	bound := bindingTo("m1")
	bound.Spec.Replicas = 2
	w := newWorld(t, cluster("m1"), deployment(), bound)
	w.rules = cannotRevise{}
	if _, err := w.ensure(t.Context(), bound, nil); err == nil {
		t.Error("the failure is not retried")
	}
	told := w.failures.Of("binding-1")["m1"]
	for _, part := range []string{"Deployment shop/web", "setting 0 replicas", "the script ended with an error"} {
		if !strings.Contains(told, part) {
			t.Errorf("%q does not say %q", told, part)
		}
	}
	for _, event := range w.told() {
		if !strings.HasPrefix(event, "Warning SyncWorkFailed ") {
			t.Errorf("told %q", event)
		}
	}
}

func TestOnlyWhatIsNewsIsToldOnTheTemplate(t *testing.T) {
	paint := overriding("paint", policyv1alpha1.PlaintextOverrider{
		Path: "/metadata/labels/color", Operator: policyv1alpha1.OverriderOpAdd, Value: policyv1alpha1.JSON{Raw: []byte(`"red"`)},
	}, "m1")
	w := newWorld(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"))
	told := func(when string, want ...string) {
		t.Helper()
		w.pass()
		if diff := cmp.Diff(want, w.told()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	told("scheduled")
	told("nothing happened")
	if err := w.store.Create(t.Context(), paint); err != nil {
		t.Fatal(err)
	}
	told("overridden", "Normal ApplyOverridePolicySucceed Overrides were applied for 1 cluster.")
	told("nothing happened to the override")
	w.change(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = b.Spec.Clusters[:1] })
	told("one cluster less")
	w.rules = cannotRevise{}
	w.change(func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 2 })
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web-deployment"}}); err == nil {
		t.Fatal("a pass whose interpreter fails succeeded")
	}
	w.told()
	w.rules = noRules{}
	told("well again", "Normal SyncWorkSucceed All Works of binding web-deployment are as they should be, after some could not be written.")
}

func TestSummariesSayEachCauseOnce(t *testing.T) {
	in := func(cluster, cause string) error { return &clusterError{cluster, errors.New(cause)} }
	cases := map[string]struct {
		failures []error
		want     string
	}{
		"one cluster":                 {[]error{in("m1", "refused")}, "cluster m1: refused"},
		"several with one cause":      {[]error{in("m1", "refused"), in("m2", "refused")}, "clusters m1, m2: refused"},
		"several with several causes": {[]error{in("m1", "a"), in("m2", "b"), in("m3", "a")}, "clusters m1, m3: a\ncluster m2: b"},
		"no cluster":                  {[]error{errors.New("listing")}, "listing"},
		"no cluster among others":     {[]error{in("m1", "refused"), errors.New("listing")}, "cluster m1: refused\nlisting"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := summary(tc.failures); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnOverriderWithoutItsContainerIsReportedOnce(t *testing.T) {
	policy := overriding("check", policyv1alpha1.PlaintextOverrider{Path: "/metadata/labels/tier", Operator: policyv1alpha1.OverriderOpAdd, Value: policyv1alpha1.JSON{Raw: []byte(`"edge"`)}}, "m1", "m2")
	policy.Spec.OverrideRules[0].Overriders.ArgsOverrider = []policyv1alpha1.CommandArgsOverrider{{ContainerName: "nginx", Operator: policyv1alpha1.OverriderOpAdd}}
	w := newWorld(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"), policy)
	w.pass()
	want := []string{
		"Normal ApplyOverridePolicySucceed Overrides were applied for 2 clusters.",
		`Warning OverrideWithoutEffect OverridePolicy "shop/check", spec.overrideRules[0].overriders.argsOverrider[0]: Deployment shop/web has no container "nginx"; it has none`,
	}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.pass()
	if again := w.told(); len(again) != 0 {
		t.Errorf("the next pass recorded %v", again)
	}
}
