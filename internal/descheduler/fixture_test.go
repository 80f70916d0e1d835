package descheduler

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/loop"
)

var noon = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// newBinding returns a scheduled binding with a current status: 5 replicas in m1, of which 3 are
// ready, and 2 ready replicas in m2.
func newBinding(name string, changes ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{}
	bound.Namespace, bound.Name, bound.Generation, bound.UID = "shop", name+"-deployment", 4, "b1"
	bound.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p1"}
	bound.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name, UID: "t1"},
		Replicas: 7, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
		Placement: &policyv1alpha1.Placement{ReplicaScheduling: aggregated()},
		Clusters:  targets(5, 2),
	}
	bound.Status.SchedulerObservedGeneration = 4
	bound.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		newStatus("m1", `{"replicas":5,"readyReplicas":3}`), newStatus("m2", `{"replicas":2,"readyReplicas":2}`),
	}
	recordPlacement(bound)
	for _, change := range changes {
		change(bound)
	}
	return bound
}

// targets returns targets with replicas in m1 and m2.
func targets(m1, m2 int32) []workv1alpha2.TargetCluster {
	return []workv1alpha2.TargetCluster{{Name: "m1", Replicas: m1}, {Name: "m2", Replicas: m2}}
}

// newStatus returns the status item of a cluster. Without raw, the item has no status.
func newStatus(cluster, raw string) workv1alpha2.AggregatedStatusItem {
	item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true}
	if raw != "" {
		item.Status = &runtime.RawExtension{Raw: []byte(raw)}
	}
	return item
}

func newCluster(name string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	return cluster
}

// fakeEstimator answers for each cluster with the same estimate, or with capacity.Unknown.
type fakeEstimator struct {
	estimates map[string]capacity.Estimate
	// asked contains the clusters of each call.
	asked [][]string
	// whileResponding is called before each answer, if it is set.
	whileResponding func()
}

func (f *fakeEstimator) UnschedulableReplicas(_ context.Context, _ workv1alpha2.ObjectReference, _ time.Duration, clusters []string) []capacity.Estimate {
	f.asked = append(f.asked, clusters)
	if f.whileResponding != nil {
		f.whileResponding()
	}
	answers := make([]capacity.Estimate, len(clusters))
	for i, cluster := range clusters {
		answers[i].Count = capacity.Unknown
		if estimate, ok := f.estimates[cluster]; ok {
			answers[i] = estimate
		}
	}
	return answers
}

// fixture is a descheduler with a fake API server and a fake estimator.
type fixture struct {
	*descheduler
	store     client.WithWatch
	estimator *fakeEstimator
	informers *informertest.FakeInformers
	recorder  *record.FakeRecorder
	// writes counts the writes. rejectWrite is returned instead of the next response to a write.
	writes      int
	rejectWrite error
}

// newFixture returns a fixture in which 2 replicas of every workload are unschedulable in m1.
func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(workv1alpha2.AddToScheme(scheme), clusterv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		estimator: &fakeEstimator{estimates: map[string]capacity.Estimate{"m1": {Count: 2}}},
		informers: &informertest.FakeInformers{Scheme: scheme}, recorder: record.NewFakeRecorder(100),
	}
	f.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, newCluster("m1"), newCluster("m2"))...).
		WithStatusSubresource(&workv1alpha2.ResourceBinding{}).Build()
	f.descheduler = &descheduler{
		options: DefaultOptions(), cache: f.informers, estimator: f.estimator, events: loop.NewEvents(f.recorder),
		ownWrites: loop.NewWrites[reconcile.Request](nil), now: func() time.Time { return noon },
		karmada: interceptor.NewClient(f.store, interceptor.Funcs{
			Patch: func(ctx context.Context, store client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				f.writes++
				if err := f.rejectWrite; err != nil {
					f.rejectWrite = nil
					return err
				}
				return store.Patch(ctx, object, patch, options...)
			},
		}),
	}
	return f
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: name + "-deployment"}}
}

func (f *fixture) stored(t *testing.T) *workv1alpha2.ResourceBinding {
	t.Helper()
	bound := &workv1alpha2.ResourceBinding{}
	if err := f.store.Get(t.Context(), requestFor("web").NamespacedName, bound); err != nil {
		t.Fatal(err)
	}
	return bound
}

// pass processes the binding once and returns the retry delay.
func (f *fixture) pass(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := f.Reconcile(t.Context(), requestFor("web"))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (f *fixture) recordedEvents() []string {
	var events []string
	for {
		select {
		case event := <-f.recorder.Events:
			events = append(events, event)
		default:
			return events
		}
	}
}
