package scheduler

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/conditions"
)

// loop is a scheduler over a store that counts writes.
type loop struct {
	*scheduler
	recorder *record.FakeRecorder
	writes   []string
	// refuse answers a write instead of the store, once.
	refuse map[string]error
}

func newLoop(t *testing.T, of client.Object, clusters ...*clusterv1alpha1.Cluster) *loop {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(workv1alpha2.AddToScheme(scheme), clusterv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := &loop{recorder: record.NewFakeRecorder(100), refuse: map[string]error{}}
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(of).WithStatusSubresource(of).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, store client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := l.write("clusters"); err != nil {
				return err
			}
			return store.Patch(ctx, obj, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, store client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := l.write(sub); err != nil {
				return err
			}
			return store.SubResource(sub).Update(ctx, obj, opts...)
		},
	}).Build()
	o := DefaultOptions()
	o.Registry = prometheus.NewRegistry()
	measured, err := newMeasurements(o.Registry)
	if err != nil {
		t.Fatal(err)
	}
	l.scheduler = &scheduler{
		options: o, karmada: karmada, live: karmada, events: observe.NewEvents(l.recorder), clusters: newWorld(),
		backlog: newBacklog(o), recent: newRecent(), told: newTold(), foreign: newForeign(), measured: measured, now: func() time.Time { return noon.Time },
	}
	for _, cluster := range clusters {
		l.clusters.put(cluster, true)
	}
	return l
}

func (l *loop) write(what string) error {
	l.writes = append(l.writes, what)
	err := l.refuse[what]
	delete(l.refuse, what)
	return err
}

// pass schedules the binding once and returns what was written, when it is looked
// at again, and how it is stored.
func (l *loop) pass(t *testing.T) (writes []string, after time.Duration, stored *workv1alpha2.ResourceBinding) {
	t.Helper()
	l.writes = nil
	result, err := l.Reconcile(t.Context(), named("web-deployment"))
	if err != nil {
		t.Fatal(err)
	}
	stored = &workv1alpha2.ResourceBinding{}
	if err := l.karmada.Get(t.Context(), named("web-deployment").NamespacedName, stored); err != nil {
		t.Fatal(err)
	}
	return l.writes, result.RequeueAfter, stored
}

func (l *loop) told() []string {
	var events []string
	for {
		select {
		case event := <-l.recorder.Events:
			events = append(events, event)
		default:
			return events
		}
	}
}

func TestADecisionIsTwoWritesAndOneEvent(t *testing.T) {
	l := newLoop(t, unversioned(bound(divided)), member("member1"), member("member2"))
	writes, after, stored := l.pass(t)
	if diff := cmp.Diff([]string{"clusters", "status"}, writes); diff != "" || after != 0 {
		t.Errorf("again after %s, writes:\n%s", after, diff)
	}
	if !conditions.Is(stored.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue) || len(stored.Spec.Clusters) != 2 {
		t.Errorf("stored %+v", stored)
	}
	want := []string{"Normal ScheduleBindingSucceed Binding has been scheduled successfully. Result: {member1:2, member2:2}"}
	if diff := cmp.Diff(want, l.told()); diff != "" {
		t.Error(diff)
	}
	if writes, _, _ := l.pass(t); len(writes) != 0 || len(l.told()) != 0 {
		t.Errorf("the second pass writes %v", writes)
	}
}

func TestAConflictIsSilent(t *testing.T) {
	l := newLoop(t, unversioned(bound(divided)), member("member1"))
	l.refuse["clusters"] = apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("newer"))
	writes, after, stored := l.pass(t)
	if diff := cmp.Diff([]string{"clusters"}, writes); diff != "" || after != conflictDelay {
		t.Errorf("again after %s, writes:\n%s", after, diff)
	}
	if len(stored.Status.Conditions) != 0 || len(l.told()) != 0 {
		t.Errorf("a conflict is told: %+v", stored.Status)
	}
}

// After the restore of a backup the binding is older than what the scheduler has written.
func TestABindingThatWentBackIsPlacedAnew(t *testing.T) {
	l := newLoop(t, unversioned(bound(divided)), member("member1"))
	lost := &workv1alpha2.ResourceBinding{}
	if err := l.karmada.Get(t.Context(), named("web-deployment").NamespacedName, lost); err != nil {
		t.Fatal(err)
	}
	lost.ResourceVersion += "000"
	l.recent.remember(named("web-deployment"), lost)
	if _, after, _ := l.pass(t); after != conflictDelay {
		t.Errorf("the write over a lost state is tried again after %s", after)
	}
	_, _, stored := l.pass(t)
	if len(stored.Spec.Clusters) != 1 {
		t.Errorf("clusters %v", stored.Spec.Clusters)
	}
}

func TestAConflictOverTheStatusIsResolvedAtOnce(t *testing.T) {
	l := newLoop(t, unversioned(bound(divided)), member("member1"))
	l.refuse["status"] = apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("newer"))
	writes, after, stored := l.pass(t)
	if diff := cmp.Diff([]string{"clusters", "status", "status"}, writes); diff != "" || after != 0 {
		t.Errorf("again after %s, writes:\n%s", after, diff)
	}
	if !conditions.Is(stored.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue) {
		t.Errorf("stored %+v", stored.Status)
	}
}

func TestARefusalByQuotaKeepsTheOldResult(t *testing.T) {
	l := newLoop(t, unversioned(bound(divided)), member("member1"))
	l.refuse["clusters"] = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: "QuotaExceeded", Message: "over quota"}}
	_, after, stored := l.pass(t)
	condition := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
	if condition == nil || condition.Reason != workv1alpha2.BindingReasonQuotaExceeded || len(stored.Spec.Clusters) != 0 {
		t.Errorf("stored %+v", stored)
	}
	if after != time.Second {
		t.Errorf("again after %s", after)
	}
	if got := l.told(); len(got) != 2 {
		t.Errorf("told %v, want the binding and the template", got)
	}
	if _, after, _ := l.pass(t); after != 0 {
		t.Errorf("the success is followed by a look after %s", after)
	}
}

// full has no room in any cluster.
type full struct{ calls int }

func (f *full) Estimate(_ context.Context, _ Demand, clusters []*clusterv1alpha1.Cluster) (map[string]int32, error) {
	f.calls++
	return map[string]int32{clusters[0].Name: 0}, nil
}

func TestWithoutRoomABindingWaitsForIt(t *testing.T) {
	byRoom := func(of *workv1alpha2.ResourceBinding) {
		of.Spec.Placement.ReplicaScheduling.ReplicaDivisionPreference = "Aggregated"
	}
	l := newLoop(t, unversioned(bound(divided, byRoom)), member("member1"))
	estimator := &full{}
	l.estimators = []Estimator{estimator}
	writes, after, _ := l.pass(t)
	if diff := cmp.Diff([]string{"status"}, writes); diff != "" || after != 5*time.Minute {
		t.Errorf("again after %s, writes:\n%s", after, diff)
	}
	l.told()
	if writes, _, _ := l.pass(t); len(writes) != 0 || len(l.told()) != 0 || estimator.calls != 2 {
		t.Errorf("the same failure writes %v after %d estimates", writes, estimator.calls)
	}
}

func TestBindingsOfOthersAndThoseHeldBackAreLeftAlone(t *testing.T) {
	cases := map[string]func(*workv1alpha2.ResourceBinding){
		"another scheduler that has reported": func(of *workv1alpha2.ResourceBinding) {
			of.Spec.SchedulerName = "other"
			of.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: "Any"}}
		},
		"suspended": func(of *workv1alpha2.ResourceBinding) {
			of.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		},
		"a dependency": func(of *workv1alpha2.ResourceBinding) { of.Labels = nil },
		"being deleted": func(of *workv1alpha2.ResourceBinding) {
			of.DeletionTimestamp, of.Finalizers = &noon, []string{"karmada.io/binding-controller"}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, unversioned(bound(change)), member("member1"))
			if writes, after, _ := l.pass(t); len(writes) != 0 || after != 0 || len(l.told()) != 0 {
				t.Errorf("writes %v, again after %s", writes, after)
			}
		})
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	l := newLoop(t, unversioned(bound()))
	gone := named("gone")
	l.backlog.fail(gone, later)
	l.recent.remember(gone, bound())
	if _, err := l.Reconcile(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if len(l.backlog.waiting) != 0 || len(l.recent.written) != 0 {
		t.Error("something is remembered of a binding that is gone")
	}
}

// unversioned is an object that a store can take.
func unversioned(of *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	of.ResourceVersion = ""
	return of
}

func TestClustersThatDoNotExistAreNamedUntilTheyDo(t *testing.T) {
	misspelt := func(of *workv1alpha2.ResourceBinding) {
		of.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member1", "membre2"}}
	}
	const remark = ` The placement names cluster "membre2", which does not exist: correct the name, or join the cluster.`
	for name, shape := range map[string]func(*workv1alpha2.ResourceBinding){"duplicated": func(*workv1alpha2.ResourceBinding) {}, "divided": divided} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, unversioned(bound(shape, misspelt)), member("member1"))
			says := func(want string) {
				t.Helper()
				_, _, stored := l.pass(t)
				if diff := cmp.Diff(want, conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled).Message); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			}
			says(messageScheduled + remark)
			if writes, _, _ := l.pass(t); len(writes) != 0 {
				t.Errorf("the second pass writes %v", writes)
			}
			l.clusters.put(member("membre2"), true)
			says(messageScheduled)
			l.clusters.remove("membre2")
			says(messageScheduled + remark)
		})
	}
}

func TestAPlacementThatNamesNoClusterThatExistsSaysSo(t *testing.T) {
	l := newLoop(t, unversioned(bound(divided, func(of *workv1alpha2.ResourceBinding) {
		of.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"membre1"}}
	})), member("member1"))
	const want = "0/1 clusters are available: no cluster matches the cluster affinity (clusterNames membre1)." +
		` The placement names cluster "membre1", which does not exist: correct the name, or join the cluster.`
	_, _, stored := l.pass(t)
	told := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
	if told.Reason != workv1alpha2.BindingReasonNoClusterFit || told.Message != want {
		t.Errorf("condition %+v", told)
	}
	event := "Warning ScheduleBindingFailed " + want
	if diff := cmp.Diff([]string{event, event}, l.told()); diff != "" {
		t.Error(diff)
	}
	// The binding, too, tells of the end of it.
	l.clusters.put(member("membre1"), true)
	l.pass(t)
	event = "Normal ScheduleBindingSucceed Binding has been scheduled successfully. Result: {membre1:4}"
	if diff := cmp.Diff([]string{event, event}, l.told()); diff != "" {
		t.Error(diff)
	}
}
