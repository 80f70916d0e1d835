package hpascaletargetmarker

import (
	"context"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/access/watches/watchestest"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/memberhpa"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// deploymentRules contains rules only for Deployments.
type deploymentRules struct{}

func (deploymentRules) Rules(kind schema.GroupVersionKind) interpreter.Rules {
	if kind != deploymentKind {
		return interpreter.Rules{}
	}
	return interpreter.Rules{Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
		return 1, nil, nil
	}}
}

func newHPA(name, target string, isClaimed bool) *autoscalingv2.HorizontalPodAutoscaler {
	created := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	created.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}
	if isClaimed {
		created.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
	}
	return created
}

func newDeployment(name string, isOwn bool) *appsv1.Deployment {
	created := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if isOwn {
		memberhpa.SetMark(created, true)
	}
	return created
}

type fixture struct {
	*reconciler
	store client.WithWatch
	queue queue
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := looptest.NewScheme(t, appsv1.AddToScheme, autoscalingv2.AddToScheme, workv1alpha2.AddToScheme)
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	manager := watchestest.NewManager(t.Context(), store)
	hpas := &hpaWatch{manager: manager}
	f := &fixture{
		reconciler: &reconciler{karmada: store, hpas: hpas, targets: newTargetWatches(manager, deploymentRules{}, hpas.scales, logr.Discard())},
		store:      store, queue: loop.NewPriorityQueue("test", loop.NewRateLimiter[memberhpa.Target](loop.Backoff{})),
	}
	t.Cleanup(f.queue.ShutDown)
	return f
}

func targetNamed(name string) memberhpa.Target {
	return memberhpa.Target{Kind: deploymentKind, Namespace: "shop", Name: name}
}

// startWatches watches HPAs and Deployments, and waits for their lists.
func (f *fixture) startWatches(t *testing.T) {
	t.Helper()
	if err := f.hpas.start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f.targets.watch(deploymentKind, f.queue)
	for _, kind := range []schema.GroupVersionKind{hpaKind, deploymentKind} {
		if objects, ok := f.hpas.manager.Find(watches.ControlPlane, watches.Query{Kind: kind}); !ok || !objects.WaitForList(t.Context()) {
			t.Fatalf("%s are not listed", kind.Kind)
		}
	}
}

func TestReconcile(t *testing.T) {
	byUser := newDeployment("web", false)
	byUser.Labels = map[string]string{workv1alpha2.RetainReplicasLabel: "true"}
	tests := map[string]struct {
		objects []client.Object
		want    bool
	}{
		"the target of a claimed HPA is marked":                    {[]client.Object{newHPA("a", "web", true), newDeployment("web", false)}, true},
		"the target of an HPA without a claim is not marked":       {[]client.Object{newHPA("a", "web", false), newDeployment("web", false)}, false},
		"the mark goes when the claim has gone":                    {[]client.Object{newHPA("a", "web", false), newDeployment("web", true)}, false},
		"the mark goes when the HPA has gone":                      {[]client.Object{newDeployment("web", true)}, false},
		"the mark goes when the HPA scales another template":       {[]client.Object{newHPA("a", "api", true), newDeployment("web", true)}, false},
		"the mark stays while another HPA scales the template":     {[]client.Object{newHPA("b", "web", true), newDeployment("web", true)}, true},
		"the label of a user stays without an HPA":                 {[]client.Object{byUser}, true},
		"an HPA of another namespace does not affect the template": {[]client.Object{otherNamespace(newHPA("a", "web", true)), newDeployment("web", false)}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.objects...)
			f.startWatches(t)
			for range 2 { // the second pass has the old state in its cache, or nothing to do
				if _, err := f.Reconcile(t.Context(), targetNamed("web")); err != nil {
					t.Fatal(err)
				}
			}
			stored := &appsv1.Deployment{}
			if err := f.store.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, stored); err != nil {
				t.Fatal(err)
			}
			if got := memberhpa.HasMark(stored); got != test.want {
				t.Errorf("marked = %t, want %t", got, test.want)
			}
		})
	}
}

func otherNamespace(hpa *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	hpa.Namespace = "other"
	return hpa
}

func TestNothingIsRemovedBeforeHPAsAreListed(t *testing.T) {
	f := newFixture(t, newDeployment("web", true))
	f.targets.watch(deploymentKind, f.queue)
	objects, _ := f.hpas.manager.Find(watches.ControlPlane, watches.Query{Kind: deploymentKind})
	if !objects.WaitForList(t.Context()) {
		t.Fatal("Deployments are not listed")
	}
	result, err := f.Reconcile(t.Context(), targetNamed("web"))
	if want := loop.StaleResult(); err != nil || !cmp.Equal(result, want) {
		t.Errorf("result %+v, %v; want %+v", result, err, want)
	}
	stored := &appsv1.Deployment{}
	if err := f.store.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, stored); err != nil || !memberhpa.HasMark(stored) {
		t.Errorf("the mark was removed: %v, %v", stored.Labels, err)
	}
}

func TestKindsWithoutRulesAreNotWatched(t *testing.T) {
	f := newFixture(t)
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	f.targets.watch(kind, f.queue)
	f.targets.watch(hpaKind, f.queue)
	f.targets.retryKinds(t.Context(), interpreter.Kinds{})
	for _, each := range []schema.GroupVersionKind{kind, hpaKind} {
		if _, isWatched := f.hpas.manager.Find(watches.ControlPlane, watches.Query{Kind: each}); isWatched {
			t.Errorf("%s is watched", each.Kind)
		}
	}
	if result, err := f.Reconcile(t.Context(), memberhpa.Target{Kind: kind, Namespace: "shop", Name: "x"}); err != nil || result != (reconcile.Result{}) {
		t.Errorf("result %+v, %v", result, err)
	}
}

func TestHPAsEnqueueTheirTargets(t *testing.T) {
	tests := map[string]struct {
		before, after *autoscalingv2.HorizontalPodAutoscaler
		want          []string
	}{
		"a new claimed HPA":              {after: newHPA("a", "web", true), want: []string{"web"}},
		"a new HPA without a claim":      {after: newHPA("a", "web", false)},
		"an HPA that is claimed":         {newHPA("a", "web", false), newHPA("a", "web", true), []string{"web"}},
		"an HPA that loses its claim":    {newHPA("a", "web", true), newHPA("a", "web", false), []string{"web"}},
		"an HPA that changes its target": {newHPA("a", "api", true), newHPA("a", "web", true), []string{"api", "web"}},
		"an HPA with another change":     {newHPA("a", "web", true), newHPA("a", "web", true), nil},
		"a deleted HPA":                  {before: newHPA("a", "web", true), want: []string{"web"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			handler := f.newHPAHandler(f.queue)
			switch {
			case test.before == nil:
				handler.OnAdd(toUnstructured(t, test.after), false)
			case test.after == nil:
				handler.OnDelete(toUnstructured(t, test.before))
			default:
				handler.OnUpdate(toUnstructured(t, test.before), toUnstructured(t, test.after))
			}
			if diff := cmp.Diff(test.want, f.takeQueue()); diff != "" {
				t.Errorf("queued templates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTemplatesWithDoubtfulMarksAreQueued(t *testing.T) {
	f := newFixture(t, newHPA("a", "web", true))
	f.startWatches(t)
	handler := f.targets.newTemplateHandler(deploymentKind, f.queue)
	template := func(name string, isOwn bool) *unstructured.Unstructured {
		return toUnstructured(t, newDeployment(name, isOwn))
	}
	handler.OnAdd(template("web", false), false)
	handler.OnAdd(template("other", false), false)
	handler.OnAdd(template("orphan", true), true)
	handler.OnUpdate(template("same", true), template("same", true))
	handler.OnUpdate(template("removed", true), template("removed", false))
	if diff := cmp.Diff([]string{"orphan", "removed", "web"}, f.takeQueue()); diff != "" {
		t.Errorf("queued templates (-want +got):\n%s", diff)
	}
}

func (f *fixture) takeQueue() (names []string) {
	for f.queue.Len() > 0 {
		target, _ := f.queue.Get()
		f.queue.Done(target)
		names = append(names, target.Name)
	}
	slices.Sort(names)
	return names
}

func toUnstructured(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}
