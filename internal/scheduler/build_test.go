package scheduler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

func noonPlus(minutes int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
}

func member(name string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	return cluster
}

func newBinding(change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "b1", Generation: 1, ResourceVersion: "10",
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p1"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "t1"},
			Replicas: 4, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
			Placement: &policyv1alpha1.Placement{},
		},
	}
	for _, apply := range change {
		apply(bound)
	}
	return bound
}

func divided(bound *workv1alpha2.ResourceBinding) {
	bound.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
	}
}

func inAffinityGroups(bound *workv1alpha2.ResourceBinding) {
	bound.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"none"}}},
		{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member1"}}},
	}
}

func targets(names ...string) []workv1alpha2.TargetCluster {
	var list []workv1alpha2.TargetCluster
	for _, name := range names {
		list = append(list, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
	}
	return list
}

// testScheduler is a scheduler with a fake API server that records writes.
type testScheduler struct {
	*scheduler
	recorder *record.FakeRecorder
	writes   []string
	// rejectOnce holds errors that replace the response to the next write.
	rejectOnce map[string]error
}

func newTestScheduler(t *testing.T, bound client.Object, clusters ...*clusterv1alpha1.Cluster) *testScheduler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(workv1alpha2.AddToScheme(scheme), clusterv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := &testScheduler{recorder: record.NewFakeRecorder(100), rejectOnce: map[string]error{}}
	store := looptest.Indexer{ClientBuilder: fake.NewClientBuilder().WithScheme(scheme)}
	if err := loop.AddIndexes(store, indexes(placement.Features{WorkloadAffinity: true})...); err != nil {
		t.Fatal(err)
	}
	karmada := store.WithObjects(bound).WithStatusSubresource(bound).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, store client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := l.write("clusters"); err != nil {
				return err
			}
			return store.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, store client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := l.write(sub); err != nil {
				return err
			}
			return store.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	o := DefaultOptions()
	measured, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	l.scheduler = &scheduler{
		options: o, karmada: karmada, liveReader: karmada, events: loop.NewEvents(l.recorder), clusters: newClusterSnapshots(),
		backoff: newFailureBackoff(o), ownWrites: loop.NewWrites[request](nil), reportedFailures: newReportedFailures(), unreported: newUnreportedTracker(), placed: lru.New(maxPlacedBindings), metrics: measured, now: func() time.Time { return noon.Time },
	}
	for _, cluster := range clusters {
		l.clusters.put(cluster, true)
	}
	return l
}

func (l *testScheduler) write(what string) error {
	l.writes = append(l.writes, what)
	err := l.rejectOnce[what]
	delete(l.rejectOnce, what)
	return err
}

// pass processes the binding once and returns the writes, the retry delay and the stored
// binding.
func (l *testScheduler) pass(t *testing.T) (writes []string, after time.Duration, stored *workv1alpha2.ResourceBinding) {
	t.Helper()
	l.writes = nil
	result, err := l.Reconcile(t.Context(), requestFor("web-deployment"))
	if err != nil {
		t.Fatal(err)
	}
	stored = &workv1alpha2.ResourceBinding{}
	if err := l.karmada.Get(t.Context(), requestFor("web-deployment").NamespacedName, stored); err != nil {
		t.Fatal(err)
	}
	return l.writes, result.RequeueAfter, stored
}

func (l *testScheduler) recordedEvents() []string {
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

// withoutVersion removes the resource version, so that the fake client accepts the object.
func withoutVersion(bound *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	bound.ResourceVersion = ""
	return bound
}

func requestFor(name string) request {
	return request{namespaced: true, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

func newBindingVersion(rv string, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	bound := newBinding(change...)
	bound.ResourceVersion = rv
	return bound
}
