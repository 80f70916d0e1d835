package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// fixture is a reconciler over a fake store.
type fixture struct {
	*reconciler
	store    client.WithWatch
	recorder *record.FakeRecorder
	writes   int
	// writeErr is returned by all writes if it is set.
	writeErr error
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	measured, err := newEvictionMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{recorder: record.NewFakeRecorder(1000)}
	f.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&workv1alpha2.ResourceBinding{}, loop.BindingsByCluster.Name, loop.BindingsByCluster.Keys).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
				f.writes++
				if f.writeErr != nil {
					return f.writeErr
				}
				return c.Patch(ctx, object, patch, o...)
			},
		}).Build()
	f.reconciler = &reconciler{
		options: DefaultOptions(), namespaced: true, karmada: f.store, live: f.store, events: loop.NewEvents(f.recorder),
		rateLimiter: newRateLimiter(1000), backlog: newBacklog(measured, QueueName), metrics: measured, now: func() time.Time { return noon },
	}
	return f
}

func (f *fixture) readBinding(t *testing.T) *workv1alpha2.ResourceBinding {
	t.Helper()
	stored := &workv1alpha2.ResourceBinding{}
	if err := f.store.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

func newTaintedCluster(added time.Duration) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	cluster.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: noon.Add(added)}}}
	return cluster
}

func newBinding(tolerations ...corev1.Toleration) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "1"}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "2"}
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}}
	bound.Spec.Placement = &policyv1alpha1.Placement{ClusterTolerations: tolerations}
	return bound
}

var webInM1 = request{client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, "m1"}

func TestReconcile(t *testing.T) {
	forAMinute := corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(60))}
	deleted := newBinding()
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: noon}, []string{"example.io/wait"}
	leaves := newTaintedCluster(0)
	leaves.DeletionTimestamp, leaves.Finalizers = &metav1.Time{Time: noon}, []string{"example.io/wait"}
	elsewhere := newBinding()
	elsewhere.Spec.Clusters = elsewhere.Spec.Clusters[1:]
	healthy := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	tests := map[string]struct {
		stored       []client.Object
		refuse       error
		evicted      bool
		requeueAfter time.Duration
		isStale      bool
		wantErr      bool
		events       int
	}{
		"an untolerated taint":                                       {stored: []client.Object{newTaintedCluster(0), newBinding()}, evicted: true, events: 2},
		"a toleration that has expired":                              {stored: []client.Object{newTaintedCluster(-time.Minute), newBinding(forAMinute)}, evicted: true, events: 2},
		"a toleration that expires later":                            {stored: []client.Object{newTaintedCluster(-20 * time.Second), newBinding(forAMinute)}, requeueAfter: 40 * time.Second},
		"a toleration without a limit":                               {stored: []client.Object{newTaintedCluster(0), newBinding(corev1.Toleration{Operator: corev1.TolerationOpExists})}},
		"a cluster without taints":                                   {stored: []client.Object{healthy, newBinding()}},
		"an unknown cluster":                                         {stored: []client.Object{newBinding()}},
		"a cluster in deletion":                                      {stored: []client.Object{leaves, newBinding()}},
		"a binding in deletion":                                      {stored: []client.Object{newTaintedCluster(0), deleted}},
		"a binding in other clusters":                                {stored: []client.Object{newTaintedCluster(0), elsewhere}},
		"a deleted binding":                                          {stored: []client.Object{newTaintedCluster(0)}},
		"a conflict is retried without an event":                     {stored: []client.Object{newTaintedCluster(0), newBinding()}, refuse: apierrors.NewConflict(schema.GroupResource{}, "x", nil), isStale: true},
		"a rejection is retried with events on binding and template": {stored: []client.Object{newTaintedCluster(0), newBinding()}, refuse: errors.New("rejected"), wantErr: true, events: 2},
		"a binding that is deleted in the meantime":                  {stored: []client.Object{newTaintedCluster(0), newBinding()}, refuse: apierrors.NewNotFound(schema.GroupResource{}, "x")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.stored...)
			f.writeErr = test.refuse
			result, err := f.Reconcile(t.Context(), webInM1)
			if (err != nil) != test.wantErr || result.RequeueAfter != test.requeueAfter || (result == loop.StaleResult()) != test.isStale || len(f.recorder.Events) != test.events {
				t.Errorf("error %v, result %v, %d events", err, result, len(f.recorder.Events))
			}
			if !test.evicted {
				if f.writes > 0 && test.refuse == nil {
					t.Errorf("%d writes", f.writes)
				}
				return
			}
			for range test.events {
				if event, want := <-f.recorder.Events, "Normal EvictionStarted Evicting from cluster m1 (TaintUntolerated, Gracefully): the taint "; !strings.HasPrefix(event, want) {
					t.Errorf("event %q, want %q", event, want)
				}
			}
			spec := f.readBinding(t).Spec
			if diff := cmp.Diff([]workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}}, spec.Clusters); diff != "" || len(spec.GracefulEvictionTasks) != 1 || f.writes != 1 {
				t.Errorf("%d writes, tasks %+v, clusters (-want +got):\n%s", f.writes, spec.GracefulEvictionTasks, diff)
			}
		})
	}
}

func TestTaintMustStillExistInTheAPIServer(t *testing.T) {
	f := newFixture(t, newTaintedCluster(0), newBinding())
	untainted := newFixture(t, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
	f.live = untainted.store
	if result, err := f.Reconcile(t.Context(), webInM1); err != nil || result.RequeueAfter != 0 || f.writes != 0 {
		t.Errorf("%d writes, %+v, %v", f.writes, result, err)
	}
}

func TestUnreadableStateBlocksTheEviction(t *testing.T) {
	bound := newBinding()
	bound.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
		PurgeMode:         policyv1alpha1.PurgeModeDirectly,
		StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "l", JSONPath: "{.id}"}}},
	}}
	f := newFixture(t, newTaintedCluster(0), bound)
	f.options.PreserveState = true
	for range 3 {
		if _, err := f.Reconcile(t.Context(), webInM1); err == nil {
			t.Fatal("no error")
		}
	}
	if f.writes != 0 || len(f.recorder.Events) != 2 {
		t.Errorf("%d writes, %d events", f.writes, len(f.recorder.Events))
	}
}

func TestTaintsEnqueueTheBindingsOfACluster(t *testing.T) {
	many := []client.Object{newTaintedCluster(0)}
	for i := range 5 {
		bound := newBinding()
		bound.Name = fmt.Sprintf("web-%d", i)
		bound.Spec.Clusters = bound.Spec.Clusters[i%2:]
		many = append(many, bound)
	}
	f := newFixture(t, many...)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[request]())
	defer q.ShutDown()
	f.enqueueBindingsOfCluster(t.Context(), q, newTaintedCluster(0))
	f.enqueueBindingsOfCluster(t.Context(), q, newTaintedCluster(0))
	if q.Len() != 3 || len(f.backlog.queued) != 3 {
		t.Errorf("%d requests are queued, %d are counted", q.Len(), len(f.backlog.queued))
	}
	for q.Len() > 0 {
		next, _ := q.Get()
		if _, err := f.Reconcile(t.Context(), next); err != nil {
			t.Error(err)
		}
		q.Done(next)
	}
	if len(f.backlog.queued) != 0 || f.writes != 3 {
		t.Errorf("%d requests are counted, %d writes", len(f.backlog.queued), f.writes)
	}
	f.enqueueBindingsOfCluster(t.Context(), q, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
	f.enqueueBinding(t.Context(), q, many[2])
	if q.Len() != 0 {
		t.Errorf("%d requests are queued for clusters without taints", q.Len())
	}
	f.enqueueBinding(t.Context(), q, newBinding())
	if q.Len() != 1 {
		t.Errorf("%d requests are queued for a binding in one tainted cluster", q.Len())
	}
}

func TestBindingChangesThatRequireAPass(t *testing.T) {
	tests := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		want   bool
	}{
		"no change":                 {func(*workv1alpha2.ResourceBinding) {}, false},
		"another generation":        {func(b *workv1alpha2.ResourceBinding) { b.Generation++ }, true},
		"another status":            {func(b *workv1alpha2.ResourceBinding) { b.Status.SchedulerObservedGeneration++ }, false},
		"another annotation":        {func(b *workv1alpha2.ResourceBinding) { b.Annotations["mine"] = "1" }, false},
		"another applied placement": {func(b *workv1alpha2.ResourceBinding) { b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = "{}" }, true},
		"no applied placement": {func(b *workv1alpha2.ResourceBinding) {
			delete(b.Annotations, policyv1alpha1.AppliedPlacementAnnotation)
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := newBinding()
			before.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: `{"clusterTolerations":[]}`}
			after := before.DeepCopy()
			test.change(after)
			if got := requiresPass(before, after); got != test.want {
				t.Errorf("requires a pass: %t, want %t", got, test.want)
			}
		})
	}
}
