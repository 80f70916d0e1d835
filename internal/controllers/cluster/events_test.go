package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop"
)

func TestOverdueRemovalRecordsOneEvent(t *testing.T) {
	scheduled := func(name, scheduler string) *workv1alpha2.ResourceBinding {
		bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p1"}}}
		bound.Spec.SchedulerName, bound.Spec.Clusters = scheduler, []workv1alpha2.TargetCluster{{Name: "member1"}}
		return bound
	}
	blocking := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-member1", Name: "web", Finalizers: []string{"example.io/own"}}}
	const removed = "Normal RemoveExecutionSpaceSucceed Removed execution namespace karmada-es-member1 and all Works in it"
	tests := map[string]struct {
		objects []client.Object
		elapsed time.Duration
		want    []string
	}{
		"a Work with a foreign finalizer": {
			[]client.Object{newNamespace("karmada-es-member1"), blocking}, overdueAfter,
			[]string{removed, "Warning ClusterRemovalWaits the removal of the cluster waits for its Works; Work karmada-es-member1/web has finalizers example.io/own: see its events, or remove the finalizers that no controller handles"},
		},
		"bindings before the removal is overdue": {[]client.Object{scheduled("a", "mine")}, overdueAfter - 2*time.Second, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			leaving := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
				Name: "member1", UID: "1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer},
			}}
			karmada := newStore(t, append(test.objects, leaving)...)
			if err := karmada.Delete(t.Context(), leaving); err != nil {
				t.Fatal(err)
			}
			recorder, clock := record.NewFakeRecorder(10), time.Now().Add(test.elapsed)
			r := &reconciler{
				options: DefaultOptions(), karmada: karmada, live: karmada, events: loop.NewEvents(recorder),
				now: func() time.Time { return clock },
			}
			for range 3 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "member1"}}); err != nil {
					t.Fatal(err)
				}
			}
			close(recorder.Events)
			var events []string
			for event := range recorder.Events {
				events = append(events, event)
			}
			if diff := cmp.Diff(test.want, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
