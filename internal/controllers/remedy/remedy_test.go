package remedy

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	"karmada.io/karmada/internal/loop/looptest"
)

func newStore(t *testing.T, objects ...client.Object) client.WithWatch {
	scheme := looptest.NewScheme(t, clusterv1alpha1.AddToScheme, remedyv1alpha1.AddToScheme)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&clusterv1alpha1.Cluster{}).Build()
}

func newCluster(name string, actions ...string) *clusterv1alpha1.Cluster {
	created := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	created.Status.RemedyActions = actions
	created.Status.Conditions = []metav1.Condition{{Type: "DNS", Status: metav1.ConditionFalse}}
	return created
}

// newRemedy returns a Remedy for the named clusters, or for all clusters if there are no names.
func newRemedy(generation int64, clusters ...string) *remedyv1alpha1.Remedy {
	created := &remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "dns", Generation: generation}}
	created.Spec.Actions = []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl}
	if len(clusters) > 0 {
		created.Spec.ClusterAffinity = &remedyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	}
	return created
}

func reconcileCluster(ctx context.Context, karmada client.Client, name string) error {
	_, err := (&reconciler{karmada: karmada}).Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	return err
}

func TestReconcile(t *testing.T) {
	terminating := newCluster("m1", "TrafficControl")
	terminating.Finalizers, terminating.DeletionTimestamp = []string{clusterv1alpha1.ClusterControllerFinalizer}, new(metav1.Now())
	tests := map[string]struct {
		objects []client.Object
		want    []string
		writes  bool
	}{
		"an action of a Remedy is reported":                {[]client.Object{newCluster("m1"), newRemedy(1)}, []string{"TrafficControl"}, true},
		"an action whose Remedy is deleted is removed":     {[]client.Object{newCluster("m1", "TrafficControl")}, nil, true},
		"an action that is already reported is not stored": {[]client.Object{newCluster("m1", "TrafficControl"), newRemedy(1, "m1")}, []string{"TrafficControl"}, false},
		"a cluster without Remedies is not written":        {[]client.Object{newCluster("m1")}, nil, false},
		"a terminating cluster is not written":             {[]client.Object{terminating}, []string{"TrafficControl"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store, before, after := newStore(t, test.objects...), &clusterv1alpha1.Cluster{}, &clusterv1alpha1.Cluster{}
			if err := store.Get(t.Context(), client.ObjectKey{Name: "m1"}, before); err != nil {
				t.Fatal(err)
			}
			if err := reconcileCluster(t.Context(), store, "m1"); err != nil {
				t.Fatal(err)
			}
			if err := store.Get(t.Context(), client.ObjectKey{Name: "m1"}, after); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, after.Status.RemedyActions); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if wrote := before.ResourceVersion != after.ResourceVersion; wrote != test.writes {
				t.Errorf("wrote = %t, want %t", wrote, test.writes)
			}
		})
	}
}

func TestActionsSurviveCrashesAroundWrites(t *testing.T) {
	looptest.CrashCase{
		NewStore: func() client.WithWatch { return newStore(t, newCluster("m1", "Outdated"), newRemedy(1)) },
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			return func(ctx context.Context) error { return reconcileCluster(ctx, karmada, "m1") }
		},
		FinalState: func(ctx context.Context, from client.Reader) (string, error) {
			cluster := &clusterv1alpha1.Cluster{}
			err := from.Get(ctx, client.ObjectKey{Name: "m1"}, cluster)
			return strings.Join(cluster.Status.RemedyActions, ","), err
		},
	}.Run(t)
}

func TestRemediesEnqueueTheirClusters(t *testing.T) {
	tests := map[string]struct {
		before, after *remedyv1alpha1.Remedy
		isInitial     bool
		want          []string
	}{
		"a new Remedy for all clusters":              {after: newRemedy(1), want: []string{"m1", "m2", "m3"}},
		"a new Remedy for two clusters":              {after: newRemedy(1, "m1", "m3"), want: []string{"m1", "m3"}},
		"a Remedy that existed at the start":         {after: newRemedy(1), isInitial: true},
		"a Remedy that changes its clusters":         {before: newRemedy(1, "m1", "m2"), after: newRemedy(2, "m2", "m3"), want: []string{"m1", "m2", "m3"}},
		"a Remedy that selected all before":          {before: newRemedy(1), after: newRemedy(2, "m2"), want: []string{"m1", "m2", "m3"}},
		"a Remedy whose spec is unchanged":           {before: newRemedy(1), after: newRemedy(1)},
		"a deleted Remedy, the last one":             {before: newRemedy(1), want: []string{"m1", "m2", "m3"}},
		"a deleted Remedy for a single cluster":      {before: newRemedy(1, "m2"), want: []string{"m2"}},
		"a Remedy for a cluster that does not exist": {after: newRemedy(1, "m4")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			t.Cleanup(q.ShutDown)
			handler := (&reconciler{karmada: newStore(t, newCluster("m1"), newCluster("m2"), newCluster("m3"))}).newRemedyHandler()
			switch {
			case test.before == nil:
				handler.Create(t.Context(), event.CreateEvent{Object: test.after, IsInInitialList: test.isInitial}, q)
			case test.after == nil:
				handler.Delete(t.Context(), event.DeleteEvent{Object: test.before}, q)
			default:
				handler.Update(t.Context(), event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}, q)
			}
			var got []string
			for q.Len() > 0 {
				request, _ := q.Get()
				got = append(got, request.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}
