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
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop"
)

// monitorFixture is a monitor of a fake control plane with a fake clock.
type monitorFixture struct {
	*monitor
	t             *testing.T
	clock         time.Time
	isUnavailable bool
	events        *record.FakeRecorder
}

func newMonitorFixture(t *testing.T, clusters ...client.Object) *monitorFixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &monitorFixture{t: t, clock: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), events: record.NewFakeRecorder(10)}
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(clusters...).WithStatusSubresource(&clusterv1alpha1.Cluster{}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if w.isUnavailable {
				return errors.New("the API server is unavailable")
			}
			return c.List(ctx, list, o...)
		}}).Build()
	w.monitor = &monitor{
		options: DefaultOptions(), karmada: karmada, apiReader: karmada, events: loop.NewEvents(w.events),
		now: func() time.Time { return w.clock }, heartbeats: map[types.UID]domain.HeartbeatRecord{},
	}
	return w
}

// advance advances the clock by the given duration and checks the clusters in every period.
func (m *monitorFixture) advance(during time.Duration, each func()) {
	for end := m.clock.Add(during); m.clock.Before(end); {
		m.clock = m.clock.Add(m.options.Period)
		if each != nil {
			each()
		}
		if err := m.markSilentClusters(m.t.Context()); err != nil && !m.isUnavailable {
			m.t.Fatal(err)
		}
	}
}

func (m *monitorFixture) readyCondition(name string) string {
	cluster := &clusterv1alpha1.Cluster{}
	if err := m.karmada.Get(m.t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		m.t.Fatal(err)
	}
	if ready := readyConditionOf(cluster); ready != nil {
		return string(ready.Status) + " " + ready.Reason
	}
	return ""
}

// renew renews the Lease of a cluster. The clock of the cluster differs from the clock of the
// monitor by skew.
func (m *monitorFixture) renew(name string, skew time.Duration) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}}
	err := m.karmada.Get(m.t.Context(), client.ObjectKeyFromObject(lease), lease)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: m.clock.Add(skew)}
	if err != nil {
		err = m.karmada.Create(m.t.Context(), lease)
	} else {
		err = m.karmada.Update(m.t.Context(), lease)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

func newCluster(name string, mode clusterv1alpha1.ClusterSyncMode, ready ...metav1.ConditionStatus) *clusterv1alpha1.Cluster {
	made := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	for _, status := range ready {
		made.Status.Conditions = append(made.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: "ClusterReady"})
	}
	return made
}

func TestClusterWithoutHeartbeatsBecomesUnknown(t *testing.T) {
	const pull, push, yes = clusterv1alpha1.Pull, clusterv1alpha1.Push, metav1.ConditionTrue
	w := newMonitorFixture(t, newCluster("silent", pull, yes), newCluster("renewing", pull, yes), newCluster("late", pull, yes),
		newCluster("early", pull, yes), newCluster("new", pull), newCluster("served", push, yes))
	renew := func() {
		w.renew("renewing", 0)
		w.renew("late", -5*time.Minute)
		w.renew("early", 5*time.Minute)
	}
	w.advance(45*time.Second, renew)
	reasons := func() map[string]string {
		all := map[string]string{}
		for _, name := range []string{"silent", "renewing", "late", "early", "new", "served"} {
			all[name] = w.readyCondition(name)
		}
		return all
	}
	ready := "True ClusterReady"
	want := map[string]string{"silent": ready, "renewing": ready, "late": ready, "early": ready, "new": "", "served": ready}
	if diff := cmp.Diff(want, reasons()); diff != "" {
		t.Errorf("within the grace period (-want +got):\n%s", diff)
	}
	w.advance(30*time.Second, renew)
	want["silent"], want["new"] = "Unknown ClusterStatusUnknown", "Unknown ClusterStatusNeverUpdated"
	if diff := cmp.Diff(want, reasons()); diff != "" {
		t.Errorf("after the grace period (-want +got):\n%s", diff)
	}
	if told := len(w.events.Events); told != 2 {
		t.Errorf("%d events for two clusters", told)
	}
}

func TestOutageOfControlPlaneRestartsGracePeriod(t *testing.T) {
	w := newMonitorFixture(t, newCluster("m1", clusterv1alpha1.Pull, metav1.ConditionTrue))
	w.advance(30*time.Second, nil)
	w.isUnavailable = true
	w.advance(5*time.Minute, nil)
	w.isUnavailable = false
	w.advance(40*time.Second, nil)
	if got := w.readyCondition("m1"); got != "True ClusterReady" {
		t.Errorf("%s within the grace period after an outage of the control plane", got)
	}
	w.advance(10*time.Second, nil)
	if got := w.readyCondition("m1"); got != "Unknown ClusterStatusUnknown" {
		t.Errorf("%s after the grace period", got)
	}
}

func TestRestartOfMonitorRestartsGracePeriod(t *testing.T) {
	w := newMonitorFixture(t, newCluster("m1", clusterv1alpha1.Pull, metav1.ConditionTrue))
	w.advance(35*time.Second, nil)
	w.heartbeats, w.lastCheck = map[types.UID]domain.HeartbeatRecord{}, time.Time{}
	w.advance(40*time.Second, nil)
	if got := w.readyCondition("m1"); got != "True ClusterReady" {
		t.Errorf("%s", got)
	}
}

func TestNewClusterHasFullGracePeriod(t *testing.T) {
	w := newMonitorFixture(t, newCluster("m1", clusterv1alpha1.Pull))
	w.advance(55*time.Second, nil)
	if err := w.karmada.Delete(t.Context(), newCluster("m1", clusterv1alpha1.Pull)); err != nil {
		t.Fatal(err)
	}
	again := newCluster("m1", clusterv1alpha1.Pull)
	again.UID = "another"
	if err := w.karmada.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	w.advance(55*time.Second, nil)
	if got := w.readyCondition("m1"); got != "" {
		t.Errorf("%s of a cluster that has existed for 55 seconds", got)
	}
}

func TestRejectedStatusDoesNotBlockOtherClusters(t *testing.T) {
	const pull, yes = clusterv1alpha1.Pull, metav1.ConditionTrue
	w := newMonitorFixture(t, newCluster("a", pull, yes), newCluster("b", pull, yes))
	responding := newCluster("c", pull, yes)
	responding.Status.Conditions = append(responding.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionResponding, Status: yes})
	if err := w.karmada.Create(t.Context(), responding); err != nil {
		t.Fatal(err)
	}
	w.karmada = statusRejectingClient{w.karmada, "a"}
	var failures int
	for range 10 {
		w.clock = w.clock.Add(w.options.Period)
		if w.markSilentClusters(t.Context()) != nil {
			failures++
		}
	}
	if failures == 0 {
		t.Error("no check returned the error of the rejected status")
	}
	for name, want := range map[string]string{"a": "True ClusterReady", "b": "Unknown ClusterStatusUnknown", "c": "Unknown ClusterStatusUnknown"} {
		if got := w.readyCondition(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if err := w.karmada.Get(t.Context(), client.ObjectKeyFromObject(responding), responding); err != nil || len(responding.Status.Conditions) != 1 {
		t.Errorf("conditions of a cluster without heartbeats: %v, %v", responding.Status.Conditions, err)
	}
}

func TestRecreatedClusterHasFullGracePeriod(t *testing.T) {
	const pull, yes = clusterv1alpha1.Pull, metav1.ConditionTrue
	w := newMonitorFixture(t, newCluster("m1", pull, yes))
	w.advance(35*time.Second, nil)
	next := newCluster("m1", pull, yes)
	next.UID = "another"
	if err := errors.Join(w.karmada.Delete(t.Context(), newCluster("m1", pull)), w.karmada.Create(t.Context(), next)); err != nil {
		t.Fatal(err)
	}
	w.advance(35*time.Second, nil)
	if got := w.readyCondition("m1"); got != "True ClusterReady" {
		t.Errorf("the condition is %q", got)
	}
}

// statusRejectingClient rejects status updates of one cluster.
type statusRejectingClient struct {
	client.Client
	cluster string
}

func (s statusRejectingClient) Status() client.SubResourceWriter {
	return statusRejectingWriter{s.Client.Status(), s.cluster}
}

type statusRejectingWriter struct {
	client.SubResourceWriter
	cluster string
}

func (s statusRejectingWriter) Update(ctx context.Context, object client.Object, o ...client.SubResourceUpdateOption) error {
	if object.GetName() == s.cluster {
		return errors.New("rejected")
	}
	return s.SubResourceWriter.Update(ctx, object, o...)
}
