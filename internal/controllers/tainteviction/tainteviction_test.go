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
	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/access/observe"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world is a reconciler over a store.
type world struct {
	*reconciler
	store  client.WithWatch
	told   *record.FakeRecorder
	writes int
	// refuse answers the next writes.
	refuse error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	measured, err := newMeasurements(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{told: record.NewFakeRecorder(1000)}
	w.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&workv1alpha2.ResourceBinding{}, bindings.ClusterField, bindings.ClustersOf).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
				w.writes++
				if w.refuse != nil {
					return w.refuse
				}
				return c.Patch(ctx, object, patch, o...)
			},
		}).Build()
	w.reconciler = &reconciler{
		options: DefaultOptions(), namespaced: true, karmada: w.store, live: w.store, events: observe.NewEvents(w.told),
		pace: newPace(1000), backlog: newBacklog(measured, QueueName), measured: measured, now: func() time.Time { return noon },
	}
	return w
}

func (w *world) bound(t *testing.T) *workv1alpha2.ResourceBinding {
	t.Helper()
	stored := &workv1alpha2.ResourceBinding{}
	if err := w.store.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

func tainted(added time.Duration) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	cluster.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: noon.Add(added)}}}
	return cluster
}

func inM1(tolerations ...corev1.Toleration) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "1"}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "2"}
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}}
	bound.Spec.Placement = &policyv1alpha1.Placement{ClusterTolerations: tolerations}
	return bound
}

var of = request{client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, "m1"}

func TestReconcile(t *testing.T) {
	forAMinute := corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(60))}
	deleted := inM1()
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: noon}, []string{"example.io/wait"}
	leaves := tainted(0)
	leaves.DeletionTimestamp, leaves.Finalizers = &metav1.Time{Time: noon}, []string{"example.io/wait"}
	elsewhere := inM1()
	elsewhere.Spec.Clusters = elsewhere.Spec.Clusters[1:]
	healthy := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	tests := map[string]struct {
		stored  []client.Object
		refuse  error
		evicted bool
		again   time.Duration
		fails   bool
		told    int
	}{
		"an untolerated taint evicts at once":                   {stored: []client.Object{tainted(0), inM1()}, evicted: true, told: 2},
		"a tolerated one when its time has come":                {stored: []client.Object{tainted(-time.Minute), inM1(forAMinute)}, evicted: true, told: 2},
		"and until then it is waited for":                       {stored: []client.Object{tainted(-20 * time.Second), inM1(forAMinute)}, again: 40 * time.Second},
		"one that is tolerated for good never":                  {stored: []client.Object{tainted(0), inM1(corev1.Toleration{Operator: corev1.TolerationOpExists})}},
		"a cluster without taints evicts nothing":               {stored: []client.Object{healthy, inM1()}},
		"a cluster that nobody knows evicts nothing":            {stored: []client.Object{inM1()}},
		"a cluster that leaves is left to the scheduler":        {stored: []client.Object{leaves, inM1()}},
		"a binding that goes is left alone":                     {stored: []client.Object{tainted(0), deleted}},
		"a binding that is elsewhere is left alone":             {stored: []client.Object{tainted(0), elsewhere}},
		"a binding that is gone needs nothing":                  {stored: []client.Object{tainted(0)}},
		"a conflict is looked at again, and not told":           {stored: []client.Object{tainted(0), inM1()}, refuse: apierrors.NewConflict(schema.GroupResource{}, "x", nil), again: glance},
		"a refusal is tried again, and told where users look":   {stored: []client.Object{tainted(0), inM1()}, refuse: errors.New("refused"), fails: true, told: 2},
		"a binding that goes meanwhile is no failure of anyone": {stored: []client.Object{tainted(0), inM1()}, refuse: apierrors.NewNotFound(schema.GroupResource{}, "x")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.stored...)
			w.refuse = test.refuse
			result, err := w.Reconcile(t.Context(), of)
			if (err != nil) != test.fails || result.RequeueAfter != test.again || len(w.told.Events) != test.told {
				t.Errorf("error %v, again after %s, %d events", err, result.RequeueAfter, len(w.told.Events))
			}
			if !test.evicted {
				if w.writes > 0 && test.refuse == nil {
					t.Errorf("%d writes", w.writes)
				}
				return
			}
			for range test.told {
				if event, want := <-w.told.Events, "Normal EvictionStarted Evicting from cluster m1 (TaintUntolerated, Gracefully): the taint "; !strings.HasPrefix(event, want) {
					t.Errorf("event %q, want %q", event, want)
				}
			}
			spec := w.bound(t).Spec
			if diff := cmp.Diff([]workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}}, spec.Clusters); diff != "" || len(spec.GracefulEvictionTasks) != 1 || w.writes != 1 {
				t.Errorf("%d writes, tasks %+v, clusters (-want +got):\n%s", w.writes, spec.GracefulEvictionTasks, diff)
			}
		})
	}
}

func TestATaintThatIsGoneFromTheStoreEvictsNothing(t *testing.T) {
	w := newWorld(t, tainted(0), inM1())
	cured := newWorld(t, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
	w.live = cured.store
	if result, err := w.Reconcile(t.Context(), of); err != nil || result.RequeueAfter != 0 || w.writes != 0 {
		t.Errorf("%d writes, %+v, %v", w.writes, result, err)
	}
}

func TestStateThatCannotBeReadKeepsTheWorkloadWhereItIs(t *testing.T) {
	bound := inM1()
	bound.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
		PurgeMode:         policyv1alpha1.PurgeModeDirectly,
		StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "l", JSONPath: "{.id}"}}},
	}}
	w := newWorld(t, tainted(0), bound)
	w.options.PreserveState = true
	for range 3 {
		if _, err := w.Reconcile(t.Context(), of); err == nil {
			t.Fatal("no error")
		}
	}
	if w.writes != 0 || len(w.told.Events) != 2 {
		t.Errorf("%d writes, %d events", w.writes, len(w.told.Events))
	}
}

func TestOnlyChangesOfTaintsLookAtWhatIsInACluster(t *testing.T) {
	many := []client.Object{tainted(0)}
	for i := range 5 {
		bound := inM1()
		bound.Name = fmt.Sprintf("web-%d", i)
		bound.Spec.Clusters = bound.Spec.Clusters[i%2:]
		many = append(many, bound)
	}
	w := newWorld(t, many...)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[request]())
	defer q.ShutDown()
	w.pushIn(t.Context(), q, tainted(0))
	w.pushIn(t.Context(), q, tainted(0))
	if q.Len() != 3 || len(w.backlog.queued) != 3 {
		t.Errorf("%d are queued, %d are counted", q.Len(), len(w.backlog.queued))
	}
	for q.Len() > 0 {
		next, _ := q.Get()
		if _, err := w.Reconcile(t.Context(), next); err != nil {
			t.Error(err)
		}
		q.Done(next)
	}
	if len(w.backlog.queued) != 0 || w.writes != 3 {
		t.Errorf("%d are counted, %d writes", len(w.backlog.queued), w.writes)
	}
	w.pushIn(t.Context(), q, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
	w.pushOf(t.Context(), q, many[2])
	if q.Len() != 0 {
		t.Errorf("%d are queued that nothing drives out", q.Len())
	}
	w.pushOf(t.Context(), q, inM1())
	if q.Len() != 1 {
		t.Errorf("%d are queued of a binding in one tainted cluster", q.Len())
	}
}

func TestWhichChangesOfABindingAreLookedAt(t *testing.T) {
	tests := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		want   bool
	}{
		"none":                    {func(*workv1alpha2.ResourceBinding) {}, false},
		"of its specification":    {func(b *workv1alpha2.ResourceBinding) { b.Generation++ }, true},
		"of its status":           {func(b *workv1alpha2.ResourceBinding) { b.Status.SchedulerObservedGeneration++ }, false},
		"another mark":            {func(b *workv1alpha2.ResourceBinding) { b.Annotations["mine"] = "1" }, false},
		"another placement is in": {func(b *workv1alpha2.ResourceBinding) { b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = "{}" }, true},
		"no placement is in": {func(b *workv1alpha2.ResourceBinding) {
			delete(b.Annotations, policyv1alpha1.AppliedPlacementAnnotation)
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := inM1()
			before.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: `{"clusterTolerations":[]}`}
			after := before.DeepCopy()
			test.change(after)
			if got := decidesAnew(before, after); got != test.want {
				t.Errorf("looked at: %t, want %t", got, test.want)
			}
		})
	}
}
