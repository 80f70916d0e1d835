package workloadrebalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// fixture is a reconciler over a fake store, with its own clock and counters of writes.
type fixture struct {
	*reconciler
	t        *testing.T
	store    client.WithWatch
	recorder *record.FakeRecorder
	clock    time.Time
	// triggers and statuses count the writes of bindings and of statuses.
	triggers, statuses int
	// failing contains the names of bindings whose writes fail.
	failing []string
	// changedAt is the minute of the last change of the list. The fake store records no times.
	changedAt int
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{t: t, recorder: record.NewFakeRecorder(100), clock: noon.Add(time.Minute)}
	scheme := looptest.NewScheme(t, appsv1alpha1.AddToScheme, workv1alpha2.AddToScheme)
	f.store = fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&appsv1alpha1.WorkloadRebalancer{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}).
		WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			if slices.Contains(f.failing, object.GetName()) {
				return errors.New("the webhook denies it")
			}
			if object.GetName() != "r" {
				f.triggers++
			}
			return c.Patch(ctx, object, patch, o...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object, o ...client.SubResourceUpdateOption) error {
			f.statuses++
			return c.SubResource(name).Update(ctx, object, o...)
		},
	}).Build()
	f.reconciler = f.restart()
	return f
}

// restart returns a reconciler without state.
func (f *fixture) restart() *reconciler {
	options := DefaultOptions()
	options.ParallelTriggers = 1
	live := interceptor.NewClient(f.store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			err := c.Get(ctx, key, object, o...)
			if _, ok := object.(*appsv1alpha1.WorkloadRebalancer); ok {
				object.SetManagedFields([]metav1.ManagedFieldsEntry{{
					FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:workloads":{}}}`), Time: new(at(f.changedAt)),
				}})
			}
			return err
		},
	})
	r := newReconciler(f.store, live, loop.NewEvents(f.recorder), options)
	r.now = func() time.Time { return f.clock }
	return r
}

// settle runs passes until one requests no immediate pass, and returns its result. Requested delays pass on the
// clock.
func (f *fixture) settle() (reconcile.Result, error) {
	f.t.Helper()
	for range 100 {
		result, err := f.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "r"}})
		if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > 2*time.Second {
			return result, err
		}
		f.clock = f.clock.Add(result.RequeueAfter)
	}
	f.t.Fatal("the passes do not end")
	return reconcile.Result{}, nil
}

func (f *fixture) read() *appsv1alpha1.WorkloadRebalancer {
	f.t.Helper()
	stored := &appsv1alpha1.WorkloadRebalancer{}
	if err := f.store.Get(f.t.Context(), client.ObjectKey{Name: "r"}, stored); err != nil {
		f.t.Fatal(err)
	}
	return stored
}

// edit changes the rebalancer as a user does: the API server raises the generation and records the time.
func (f *fixture) edit(minute int, listed ...string) {
	f.t.Helper()
	stored := f.read()
	stored.Generation++
	stored.Spec.Workloads = newRebalancer(listed...).Spec.Workloads
	f.changedAt = minute
	if err := f.store.Update(f.t.Context(), stored); err != nil {
		f.t.Fatal(err)
	}
	f.clock = noon.Add(time.Duration(minute)*time.Minute + time.Second)
}

// describe returns the results of the workloads and the minutes of the reschedule requests.
func (f *fixture) describe() string {
	f.t.Helper()
	text, err := describeStore(f.t.Context(), f.store)
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

func describeStore(ctx context.Context, from client.Reader) (string, error) {
	stored := &appsv1alpha1.WorkloadRebalancer{}
	if err := from.Get(ctx, client.ObjectKey{Name: "r"}, stored); err != nil {
		return "", err
	}
	var texts []string
	for _, entry := range stored.Status.ObservedWorkloads {
		texts = append(texts, fmt.Sprintf("%s %s", entry.Workload.Name, entry.Result))
	}
	bindings := &workv1alpha2.ResourceBindingList{}
	if err := from.List(ctx, bindings); err != nil {
		return "", err
	}
	for i := range bindings.Items {
		if requested := bindings.Items[i].Spec.RescheduleTriggeredAt; requested != nil {
			texts = append(texts, fmt.Sprintf("%s at %d", bindings.Items[i].Name, int(requested.Sub(noon).Minutes())))
		}
	}
	return strings.Join(texts, ", "), nil
}

func at(minute int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)) }

// newRebalancer returns a rebalancer that was created at noon and lists Deployments by name.
func newRebalancer(listed ...string) *appsv1alpha1.WorkloadRebalancer {
	created := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "1", Generation: 1, CreationTimestamp: at(0)}}
	for _, name := range listed {
		created.Spec.Workloads = append(created.Spec.Workloads,
			appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name})
	}
	return created
}

func newBinding(name string) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name + "-deployment", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
	}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
	bound.Spec.Placement = &policyv1alpha1.Placement{}
	return bound
}

func TestWorkloadsAreTriggeredOnce(t *testing.T) {
	f := newFixture(t, newRebalancer("a", "b", "missing"), newBinding("a"), newBinding("b"))
	if result, err := f.settle(); err != nil || result != (reconcile.Result{}) {
		t.Fatalf("%+v, %v", result, err)
	}
	if diff := cmp.Diff("a Successful, b Successful, missing Failed, a-deployment at 0, b-deployment at 0", f.describe()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	status := f.read().Status
	if status.ObservedGeneration != 1 || status.FinishTime == nil || !status.FinishTime.Time.Equal(f.clock) {
		t.Errorf("status %+v", status)
	}
	if len(f.recorder.Events) != 2 { // the missing workload, and the end
		t.Errorf("%d events", len(f.recorder.Events))
	}
	f.reconciler = f.restart()
	if _, err := f.settle(); err != nil || f.triggers != 2 || f.statuses != 1 || len(f.recorder.Events) != 2 {
		t.Errorf("after a second pass: %d triggers, %d statuses, %d events, %v", f.triggers, f.statuses, len(f.recorder.Events), err)
	}
}

func TestLaterRequestIsKept(t *testing.T) {
	bound := newBinding("a")
	bound.Spec.RescheduleTriggeredAt = new(at(5))
	f := newFixture(t, newRebalancer("a"), bound)
	if _, err := f.settle(); err != nil || f.triggers != 0 || f.describe() != "a Successful, a-deployment at 5" {
		t.Errorf("%d triggers, %s, %v", f.triggers, f.describe(), err)
	}
}

func TestChangesOfTheSpec(t *testing.T) {
	f := newFixture(t, newRebalancer("a", "b"), newBinding("a"), newBinding("b"), newBinding("c"))
	for _, step := range []struct {
		name   string
		minute int
		listed []string
		want   string
	}{
		{"the first list", 0, nil, "a Successful, b Successful, a-deployment at 0, b-deployment at 0"},
		{"an added workload is triggered at the change", 10, []string{"a", "b", "c"},
			"a Successful, b Successful, c Successful, a-deployment at 0, b-deployment at 0, c-deployment at 10"},
		{"a removed workload stays in the status", 20, []string{"b", "c"},
			"a Successful, b Successful, c Successful, a-deployment at 0, b-deployment at 0, c-deployment at 10"},
		{"a workload that returns is triggered again", 30, []string{"a", "b", "c"},
			"a Successful, b Successful, c Successful, a-deployment at 30, b-deployment at 0, c-deployment at 10"},
		{"a workload that stays is not triggered again", 40, []string{"a", "b"},
			"a Successful, b Successful, c Successful, a-deployment at 30, b-deployment at 0, c-deployment at 10"},
	} {
		if step.listed != nil {
			f.edit(step.minute, step.listed...)
		}
		f.reconciler = f.restart()
		if _, err := f.settle(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, f.describe()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestManyWorkloadsAreSpreadOverTime(t *testing.T) {
	var names []string
	var objects []client.Object
	for i := range 1000 {
		names = append(names, fmt.Sprintf("w%d", i))
		objects = append(objects, newBinding(names[i]))
	}
	f := newFixture(t, append(objects, newRebalancer(names...))...)
	started := f.clock
	if _, err := f.settle(); err != nil {
		t.Fatal(err)
	}
	if f.triggers != 1000 || f.statuses != 10 {
		t.Errorf("%d triggers and %d statuses", f.triggers, f.statuses)
	}
	if took := f.clock.Sub(started); took < 4*time.Second || took > 10*time.Second {
		t.Errorf("took %s: too fast for other traffic, or slower than 100 each second", took)
	}
}

func TestFailingWorkloadBlocksNoOther(t *testing.T) {
	var names, failing []string
	var objects []client.Object
	for i := range 250 {
		names = append(names, fmt.Sprintf("w%03d", i))
		objects = append(objects, newBinding(names[i]))
		if i < 120 {
			failing = append(failing, names[i]+"-deployment")
		}
	}
	f := newFixture(t, append(objects, newRebalancer(names...))...)
	f.failing = failing
	if _, err := f.settle(); err != nil {
		t.Fatalf("the last batch has no failure: %v", err)
	}
	if f.triggers != 130 {
		t.Errorf("%d triggers", f.triggers)
	}
	for range 2 { // the failing workloads are attempted again, and reported once
		if _, err := f.settle(); err == nil || !strings.Contains(err.Error(), "denies") || f.triggers != 130 {
			t.Fatalf("%d triggers, %v", f.triggers, err)
		}
	}
	if len(f.recorder.Events) != 1 {
		t.Errorf("%d events", len(f.recorder.Events))
	}
	f.failing = nil
	if _, err := f.settle(); err != nil || f.triggers != 250 || f.read().Status.FinishTime == nil {
		t.Errorf("%d triggers, %v", f.triggers, err)
	}
}

func TestFinishedRebalancerIsDeletedInTime(t *testing.T) {
	rebalancer := newRebalancer("a")
	rebalancer.Spec.TTLSecondsAfterFinished = new(int32(600))
	f := newFixture(t, rebalancer, newBinding("a"))
	if result, err := f.settle(); err != nil || result.RequeueAfter != 10*time.Minute {
		t.Fatalf("%+v, %v", result, err)
	}
	f.clock = f.clock.Add(9 * time.Minute)
	f.reconciler = f.restart()
	if result, err := f.settle(); err != nil || result.RequeueAfter != time.Minute {
		t.Fatalf("after a restart: %+v, %v", result, err)
	}
	f.clock = f.clock.Add(time.Minute)
	if _, err := f.settle(); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Get(t.Context(), client.ObjectKey{Name: "r"}, rebalancer); !apierrors.IsNotFound(err) {
		t.Errorf("it still exists: %v", err)
	}
}

// A user changes the list while a batch is triggered. The results must survive, because the batch would
// otherwise be triggered again at the time of the change.
func TestResultsSurviveAConcurrentChange(t *testing.T) {
	f := newFixture(t, newRebalancer("a"), newBinding("a"), newBinding("b"))
	edited := false
	f.karmada = interceptor.NewClient(f.store, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object, o ...client.SubResourceUpdateOption) error {
			if !edited {
				edited = true
				f.edit(10, "a", "b")
			}
			return c.SubResource(name).Update(ctx, object, o...)
		},
	})
	if _, err := f.settle(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a Successful, b , a-deployment at 0", f.describe()); diff != "" {
		t.Errorf("after the change (-want +got):\n%s", diff)
	}
	if _, err := f.settle(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a Successful, b Successful, a-deployment at 0, b-deployment at 10", f.describe()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOldCacheDoesNotProveThatABindingIsMissing(t *testing.T) {
	f := newFixture(t, newRebalancer("a"), newBinding("a"))
	f.karmada = interceptor.NewClient(f.store, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewNotFound(workv1alpha2.Resource("resourcebindings"), "a-deployment")
		},
	})
	if _, err := f.settle(); err != nil || f.describe() != "a Successful, a-deployment at 0" {
		t.Errorf("%s, %v", f.describe(), err)
	}
}

func TestClusterScopedTemplatesAreTriggered(t *testing.T) {
	rebalancer := newRebalancer()
	rebalancer.Spec.Workloads = []appsv1alpha1.ObjectReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "system:view"}}
	bound := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "system.view-clusterrole"}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "system:view"}
	f := newFixture(t, rebalancer, bound)
	if _, err := f.settle(); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Get(t.Context(), client.ObjectKeyFromObject(bound), bound); err != nil || bound.Spec.RescheduleTriggeredAt == nil {
		t.Errorf("not triggered, %v", err)
	}
}

func TestAPIVersionNeedNotMatch(t *testing.T) {
	rebalancer := newRebalancer("a", "b")
	rebalancer.Spec.Workloads[0].APIVersion = "apps/v1beta2"
	rebalancer.Spec.Workloads[1].APIVersion = "v1"
	f := newFixture(t, rebalancer, newBinding("a"), newBinding("b"))
	if _, err := f.settle(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a Successful, b Successful, a-deployment at 0, b-deployment at 0", f.describe()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if event := <-f.recorder.Events; !strings.Contains(event, "Deployment shop/b") || strings.Contains(event, "shop/a") {
		t.Errorf("event %q", event)
	}
}

func TestRebalancingSurvivesCrashesAroundWrites(t *testing.T) {
	var f *fixture
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			f = newFixture(t, newRebalancer("a", "b", "c"), newBinding("a"), newBinding("b"), newBinding("c"))
			if _, err := f.settle(); err != nil {
				t.Fatal(err)
			}
			f.edit(10, "b", "c")
			if _, err := f.settle(); err != nil {
				t.Fatal(err)
			}
			f.edit(20, "a", "b")
			return f.store
		},
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			r := f.restart()
			r.karmada, r.options.BatchSize = karmada, 1
			return func(ctx context.Context) error {
				f.clock = f.clock.Add(time.Second)
				_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: "r"}})
				return err
			}
		},
		FinalState: describeStore,
	}.Run(t)
	if want := "a Successful, b Successful, c Successful, a-deployment at 20, b-deployment at 0, c-deployment at 0"; f.describe() != want {
		t.Error(f.describe())
	}
}
