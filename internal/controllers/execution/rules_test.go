package execution

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// retaining returns a rule that sets the owner of a ConfigMap.
func retaining(owner string) interpreter.Rules {
	return interpreter.Rules{Retain: func(_ context.Context, desired, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		retained := desired.DeepCopy()
		return retained, unstructured.SetNestedField(retained.Object, owner, "data", "owner")
	}}
}

// rulesFixture delivers the ConfigMap shop/x of the Work w with rules that change.
type rulesFixture struct {
	*deliveryFixture
	table    interpreters.Table
	manifest *unstructured.Unstructured
	// enqueued are the Works that the controller enqueued.
	enqueued chan types.NamespacedName
}

func newRulesFixture(t *testing.T) *rulesFixture {
	t.Helper()
	f := &rulesFixture{deliveryFixture: newDeliveryFixture(t), enqueued: make(chan types.NamespacedName, 10)}
	f.rules = &f.table
	f.queues = loop.NewMemberQueues(loop.MemberQueueOptions{Name: Name, Workers: 1}, func(_ context.Context, _ string, key types.NamespacedName) (reconcile.Result, error) {
		f.enqueued <- key
		return reconcile.Result{}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.queues.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := f.applyManifest(t, nil, "ConfigMap", "shop", "x"); err != nil {
		t.Fatal(err)
	}
	manifest, err := work.DecodeManifest(f.work.Spec.Workload.Manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	f.manifest = manifest
	return f
}

// changeRules sets the rules of a kind, as an informer of rules would, and reports the change.
func (r *rulesFixture) changeRules(t *testing.T, kind schema.GroupVersionKind, rules interpreter.Rules) {
	t.Helper()
	r.table.Set(kind, rules)
	r.requeueForRules(t.Context(), interpreter.KindsOf(kind))
}

// pass runs one pass. It reports whether the pass wrote to the member, and returns the owner that
// the object has afterwards.
func (r *rulesFixture) pass(t *testing.T) (wrote bool, owner string) {
	t.Helper()
	r.tracker.startPass(workKey(r.work))
	r.hasWritten = false
	if err := r.attemptUpdate(t.Context(), r.delivery, r.manifest, r.readObject(t)); err != nil {
		t.Fatal(err)
	}
	owner, _, _ = unstructured.NestedString(r.readObject(t).Object, "data", "owner")
	return r.hasWritten, owner
}

func (r *rulesFixture) readObject(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	observed, err := r.member.GetLive(t.Context(), configMaps, client.ObjectKey{Namespace: "shop", Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return observed
}

func (r *rulesFixture) expectPass(t *testing.T, when string, wantWrite bool, wantOwner string) {
	t.Helper()
	if wrote, owner := r.pass(t); wrote != wantWrite || owner != wantOwner {
		t.Errorf("%s: wrote %t, owner %q; want %t, %q", when, wrote, owner, wantWrite, wantOwner)
	}
}

func TestChangedRetainRuleReachesAppliedObjects(t *testing.T) {
	f := newRulesFixture(t)
	f.expectPass(t, "without a rule", false, "")
	f.changeRules(t, configMaps, retaining("team-a"))
	if got := <-f.enqueued; got != workKey(f.work) {
		t.Errorf("enqueued %s", got)
	}
	f.expectPass(t, "after the first rule", true, "team-a")
	f.expectPass(t, "after the same rule", false, "team-a")
	f.changeRules(t, configMaps, retaining("team-b"))
	<-f.enqueued
	f.expectPass(t, "after another rule", true, "team-b")
	if f.tracker.hasRecentRepairs(keyOf(f.work, f.manifest)) {
		t.Error("a changed rule counts as drift")
	}
	f.changeRules(t, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, retaining("team-c"))
	f.expectPass(t, "after a rule of another kind", false, "team-b")
	if len(f.enqueued) != 0 {
		t.Errorf("a rule of another kind enqueued %s", <-f.enqueued)
	}
}

func TestRuleThatChangesDuringAPassIsAppliedByTheNext(t *testing.T) {
	f := newRulesFixture(t)
	f.changeRules(t, configMaps, interpreter.Rules{Retain: func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		f.changeRules(t, configMaps, retaining("team-b"))
		return retaining("team-a").Retain(ctx, desired, observed)
	}})
	f.expectPass(t, "during the change", true, "team-a")
	f.expectPass(t, "after the change", true, "team-b")
	f.expectPass(t, "then", false, "team-b")
}

func TestDeletedWorkIsNotEnqueuedForRules(t *testing.T) {
	f := newRulesFixture(t)
	f.guard = newGuard(t, nil)
	f.reports = loop.NewStatusWriter(fake.NewClientBuilder().Build(), nil, loop.DefaultStatusWriterOptions())
	f.stopTracking(workKey(f.work))
	if got := f.interpreted.Works(interpreter.AllKinds()); len(got) != 0 {
		t.Errorf("indexed Works %v", got)
	}
}
