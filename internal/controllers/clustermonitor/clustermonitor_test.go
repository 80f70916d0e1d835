package clustermonitor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/observe"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// world is a control plane with a clock, at which the monitor looks when told to.
type world struct {
	*monitor
	t      *testing.T
	clock  time.Time
	broken bool
	events *record.FakeRecorder
}

func newWorld(t *testing.T, clusters ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clock: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), events: record.NewFakeRecorder(10)}
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(clusters...).WithStatusSubresource(&clusterv1alpha1.Cluster{}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if w.broken {
				return errors.New("the API server is away")
			}
			return c.List(ctx, list, o...)
		}}).Build()
	w.monitor = &monitor{
		options: DefaultOptions(), karmada: karmada, live: karmada, events: observe.NewEvents(w.events),
		now: func() time.Time { return w.clock }, lives: map[types.UID]domain.Life{},
	}
	return w
}

// pass looks every period for that long.
func (w *world) pass(during time.Duration, each func()) {
	for end := w.clock.Add(during); w.clock.Before(end); {
		w.clock = w.clock.Add(w.options.Period)
		if each != nil {
			each()
		}
		if err := w.look(w.t.Context()); err != nil && !w.broken {
			w.t.Fatal(err)
		}
	}
}

func (w *world) reason(name string) string {
	cluster := &clusterv1alpha1.Cluster{}
	if err := w.karmada.Get(w.t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		w.t.Fatal(err)
	}
	if ready := readyOf(cluster); ready != nil {
		return string(ready.Status) + " " + ready.Reason
	}
	return ""
}

// renew renews the Lease of a cluster by a clock that is wrong by skew.
func (w *world) renew(name string, skew time.Duration) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}}
	err := w.karmada.Get(w.t.Context(), client.ObjectKeyFromObject(lease), lease)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: w.clock.Add(skew)}
	if err != nil {
		err = w.karmada.Create(w.t.Context(), lease)
	} else {
		err = w.karmada.Update(w.t.Context(), lease)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func cluster(name string, mode clusterv1alpha1.ClusterSyncMode, ready ...metav1.ConditionStatus) *clusterv1alpha1.Cluster {
	made := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	for _, status := range ready {
		made.Status.Conditions = append(made.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: "ClusterReady"})
	}
	return made
}

func TestOnlyAClusterThatIsSilentBecomesUnknown(t *testing.T) {
	const pull, push, yes = clusterv1alpha1.Pull, clusterv1alpha1.Push, metav1.ConditionTrue
	w := newWorld(t, cluster("silent", pull, yes), cluster("renewing", pull, yes), cluster("late", pull, yes),
		cluster("early", pull, yes), cluster("new", pull), cluster("served", push, yes))
	renew := func() {
		w.renew("renewing", 0)
		w.renew("late", -5*time.Minute)
		w.renew("early", 5*time.Minute)
	}
	w.pass(45*time.Second, renew)
	reasons := func() map[string]string {
		all := map[string]string{}
		for _, name := range []string{"silent", "renewing", "late", "early", "new", "served"} {
			all[name] = w.reason(name)
		}
		return all
	}
	ready := "True ClusterReady"
	want := map[string]string{"silent": ready, "renewing": ready, "late": ready, "early": ready, "new": "", "served": ready}
	if diff := cmp.Diff(want, reasons()); diff != "" {
		t.Errorf("within the grace (-want +got):\n%s", diff)
	}
	w.pass(30*time.Second, renew)
	want["silent"], want["new"] = "Unknown ClusterStatusUnknown", "Unknown ClusterStatusNeverUpdated"
	if diff := cmp.Diff(want, reasons()); diff != "" {
		t.Errorf("beyond (-want +got):\n%s", diff)
	}
	if told := len(w.events.Events); told != 2 {
		t.Errorf("%d events for two clusters", told)
	}
}

func TestWhatCouldNotBeHeardIsNoSilence(t *testing.T) {
	w := newWorld(t, cluster("m1", clusterv1alpha1.Pull, metav1.ConditionTrue))
	w.pass(30*time.Second, nil)
	w.broken = true
	w.pass(5*time.Minute, nil)
	w.broken = false
	w.pass(40*time.Second, nil)
	if got := w.reason("m1"); got != "True ClusterReady" {
		t.Errorf("%s within the grace after an outage of the control plane", got)
	}
	w.pass(10*time.Second, nil)
	if got := w.reason("m1"); got != "Unknown ClusterStatusUnknown" {
		t.Errorf("%s beyond it", got)
	}
}

func TestAMonitorThatBeginsGivesFreshGrace(t *testing.T) {
	w := newWorld(t, cluster("m1", clusterv1alpha1.Pull, metav1.ConditionTrue))
	w.pass(35*time.Second, nil)
	w.lives, w.listened = map[types.UID]domain.Life{}, time.Time{}
	w.pass(40*time.Second, nil)
	if got := w.reason("m1"); got != "True ClusterReady" {
		t.Errorf("%s", got)
	}
}

func TestAClusterThatIsRegisteredAnewHasNotBeenSilent(t *testing.T) {
	w := newWorld(t, cluster("m1", clusterv1alpha1.Pull))
	w.pass(55*time.Second, nil)
	if err := w.karmada.Delete(t.Context(), cluster("m1", clusterv1alpha1.Pull)); err != nil {
		t.Fatal(err)
	}
	again := cluster("m1", clusterv1alpha1.Pull)
	again.UID = "another"
	if err := w.karmada.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	w.pass(55*time.Second, nil)
	if got := w.reason("m1"); got != "" {
		t.Errorf("%s of a cluster that has been there for 55 seconds", got)
	}
}

func TestAClusterThatCannotBeMarkedDoesNotStopTheOthers(t *testing.T) {
	const pull, yes = clusterv1alpha1.Pull, metav1.ConditionTrue
	w := newWorld(t, cluster("a", pull, yes), cluster("b", pull, yes))
	answering := cluster("c", pull, yes)
	answering.Status.Conditions = append(answering.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionAnswering, Status: yes})
	if err := w.karmada.Create(t.Context(), answering); err != nil {
		t.Fatal(err)
	}
	w.karmada = refusing{w.karmada, "a"}
	var failures int
	for range 10 {
		w.clock = w.clock.Add(w.options.Period)
		if w.look(t.Context()) != nil {
			failures++
		}
	}
	if failures == 0 {
		t.Error("nobody hears that a cluster could not be marked")
	}
	for name, want := range map[string]string{"a": "True ClusterReady", "b": "Unknown ClusterStatusUnknown", "c": "Unknown ClusterStatusUnknown"} {
		if got := w.reason(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if err := w.karmada.Get(t.Context(), client.ObjectKeyFromObject(answering), answering); err != nil || len(answering.Status.Conditions) != 1 {
		t.Errorf("what a silent cluster says of itself: %v, %v", answering.Status.Conditions, err)
	}
}

func TestAClusterOfAnOldNameHasNotBeenSilent(t *testing.T) {
	const pull, yes = clusterv1alpha1.Pull, metav1.ConditionTrue
	w := newWorld(t, cluster("m1", pull, yes))
	w.pass(35*time.Second, nil)
	next := cluster("m1", pull, yes)
	next.UID = "another"
	if err := errors.Join(w.karmada.Delete(t.Context(), cluster("m1", pull)), w.karmada.Create(t.Context(), next)); err != nil {
		t.Fatal(err)
	}
	w.pass(35*time.Second, nil)
	if got := w.reason("m1"); got != "True ClusterReady" {
		t.Errorf("it is %q", got)
	}
}

// refusing is a control plane that takes no status of one cluster.
type refusing struct {
	client.Client
	of string
}

func (r refusing) Status() client.SubResourceWriter {
	return refusingStatus{r.Client.Status(), r.of}
}

type refusingStatus struct {
	client.SubResourceWriter
	of string
}

func (r refusingStatus) Update(ctx context.Context, object client.Object, o ...client.SubResourceUpdateOption) error {
	if object.GetName() == r.of {
		return errors.New("refused")
	}
	return r.SubResourceWriter.Update(ctx, object, o...)
}
