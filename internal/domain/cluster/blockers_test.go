package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// deletionTime is when the objects in these tests were deleted.
var deletionTime = metav1.NewTime(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))

// leavingWork returns a Work that is being deleted.
func leavingWork(name string, conditions ...metav1.Condition) workv1alpha1.Work {
	return workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-m1", Name: name, UID: types.UID("uid of " + name), DeletionTimestamp: &deletionTime,
			Finalizers: []string{workv1alpha1.ExecutionFinalizer},
		},
		Status: workv1alpha1.WorkStatus{Conditions: conditions},
	}
}

// warning returns a Work's warning event that occurred the given number of seconds after deletionTime.
func warning(work string, seconds int, message string) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Name: work, UID: types.UID("uid of " + work)},
		Reason:         "SyncFailed", Message: message, EventTime: metav1.NewMicroTime(deletionTime.Add(time.Duration(seconds) * time.Second)),
	}
}

func newBinding(name string, change func(*workv1alpha2.ResourceBinding)) binding.Object {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	change(bound)
	return bound
}

func TestDeletionBlockers(t *testing.T) {
	condition := func(of string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: of, Status: status, Reason: reason, Message: message}
	}
	ready := func(status metav1.ConditionStatus, message string) metav1.Condition {
		return condition(clusterv1alpha1.ClusterConditionReady, status, "R", message)
	}
	answering := func(status metav1.ConditionStatus) metav1.Condition {
		return condition(clusterv1alpha1.ClusterConditionResponding, status, "R", "refused")
	}
	space := func(change func(*corev1.Namespace)) *corev1.Namespace {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}
		change(namespace)
		return namespace
	}
	staying := space(func(*corev1.Namespace) {})
	terminating := space(func(n *corev1.Namespace) { n.DeletionTimestamp = &deletionTime })
	alive := leavingWork("web")
	alive.DeletionTimestamp = nil
	foreign := leavingWork("web")
	foreign.Finalizers = append(foreign.Finalizers, "example.com/keep")
	ownFinalizer := []string{clusterv1alpha1.ClusterControllerFinalizer}
	healthyConditions := []metav1.Condition{ready(metav1.ConditionTrue, "healthy"), answering(metav1.ConditionTrue)}
	tests := map[string]struct {
		leaving    DeletingCluster
		mode       clusterv1alpha1.ClusterSyncMode
		finalizers []string
		conditions []metav1.Condition
		want       []string
	}{
		"no blocker": {leaving: DeletingCluster{ExecutionNamespace: terminating}, finalizers: ownFinalizer, conditions: healthyConditions},
		"no controller runs": {leaving: DeletingCluster{ExecutionNamespace: staying}, finalizers: ownFinalizer,
			want: []string{"Namespace karmada-es-m1 is not being deleted: no controller has taken it up, see whether karmada-controller-manager is running and leads"}},
		"no controller runs, in Pull mode with Works": {
			leaving: DeletingCluster{ExecutionNamespace: staying, Works: []workv1alpha1.Work{alive}, WorkCount: 1}, mode: clusterv1alpha1.Pull, finalizers: ownFinalizer, conditions: healthyConditions,
			want: []string{
				"Namespace karmada-es-m1 is not being deleted: no controller has taken it up, see whether karmada-controller-manager is running and leads",
				"1 Work is left, such as karmada-es-m1/web: the Work is not being deleted yet",
			}},
		"in Pull mode the namespace stays until the Works are gone": {
			leaving: DeletingCluster{ExecutionNamespace: staying, Works: []workv1alpha1.Work{leavingWork("web")}, WorkCount: 1}, mode: clusterv1alpha1.Pull, finalizers: ownFinalizer, conditions: healthyConditions,
			want: []string{"1 Work is left, such as karmada-es-m1/web: their objects are being deleted in the cluster, see the events of the Works"}},
		"a namespace whose content cannot be deleted": {
			leaving: DeletingCluster{ExecutionNamespace: space(func(n *corev1.Namespace) {
				n.DeletionTimestamp = &deletionTime
				n.Status.Conditions = []corev1.NamespaceCondition{
					{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionTrue, Message: "metrics.k8s.io/v1beta1 is stale"},
					{Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse, Message: "all is deleted"},
				}
			})}, finalizers: ownFinalizer, conditions: healthyConditions,
			want: []string{"Namespace karmada-es-m1: NamespaceDeletionDiscoveryFailure: metrics.k8s.io/v1beta1 is stale"}},
		"a slow member": {
			leaving: DeletingCluster{Works: []workv1alpha1.Work{leavingWork("web")}, WorkCount: 1}, finalizers: ownFinalizer, conditions: healthyConditions,
			want: []string{"1 Work is left, such as karmada-es-m1/web: their objects are being deleted in the cluster, see the events of the Works"}},
		"a member that rejects a deletion: the latest event since the deletion": {
			leaving: DeletingCluster{Works: []workv1alpha1.Work{leavingWork("api"), leavingWork("web")}, WorkCount: 3, Warnings: []corev1.Event{
				warning("web", -5, "could not be created"), warning("web", 9, "webhook guard denied the request"), warning("web", 2, "timed out"), warning("gone", 9, "of another Work"),
			}}, finalizers: ownFinalizer, conditions: healthyConditions,
			want: []string{"3 Works are left, such as karmada-es-m1/web: SyncFailed: webhook guard denied the request"}},
		"deletions that wait for a confirmation": {
			leaving:    DeletingCluster{Works: []workv1alpha1.Work{leavingWork("web", condition(workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue, "NotReplaced", "confirm them"))}, WorkCount: 1},
			finalizers: ownFinalizer, conditions: healthyConditions,
			want: []string{"1 Work is left, such as karmada-es-m1/web: " + workv1alpha1.WorkDeletionHeld + "=True (NotReplaced): confirm them"}},
		"a finalizer of another owner at a Work": {
			leaving: DeletingCluster{Works: []workv1alpha1.Work{foreign}, WorkCount: 1}, finalizers: ownFinalizer, conditions: healthyConditions,
			want: []string{"1 Work is left, such as karmada-es-m1/web: finalizer example.com/keep of the Work: the controller that set it must remove it"}},
		"a member that just stopped answering": {
			leaving: DeletingCluster{Works: []workv1alpha1.Work{leavingWork("web")}, WorkCount: 3}, finalizers: ownFinalizer,
			conditions: []metav1.Condition{ready(metav1.ConditionTrue, "healthy"), answering(metav1.ConditionFalse)},
			want:       []string{"3 Works are left, such as karmada-es-m1/web: the cluster stopped responding a moment ago; their objects stay in it once it is not Ready"}},
		"a member that is not ready": {
			leaving: DeletingCluster{Works: []workv1alpha1.Work{leavingWork("web")}, WorkCount: 3}, finalizers: ownFinalizer,
			conditions: []metav1.Condition{ready(metav1.ConditionFalse, "cluster is not reachable")},
			want:       []string{"3 Works are left, such as karmada-es-m1/web: the cluster is not Ready (cluster is not reachable); their objects stay in it"}},
		"a member whose status was never collected": {
			leaving: DeletingCluster{Works: []workv1alpha1.Work{leavingWork("web")}, WorkCount: 1}, finalizers: ownFinalizer,
			want: []string{"1 Work is left, such as karmada-es-m1/web: no controller has collected its status yet"}},
		"bindings with a reason of their own": {
			leaving: DeletingCluster{MoreBindings: true, Bindings: []binding.Object{
				newBinding("web", func(b *workv1alpha2.ResourceBinding) {
					b.Status.Conditions = []metav1.Condition{condition(workv1alpha2.Scheduled, metav1.ConditionFalse, "NoClusterFit", "spread constraint cluster wants 2 clusters, 1 fits")}
				}),
				newBinding("api", func(b *workv1alpha2.ResourceBinding) {
					b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
				}),
				newBinding("job", func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "mine" }),
				newBinding("old", func(b *workv1alpha2.ResourceBinding) {
					b.DeletionTimestamp, b.Finalizers = &deletionTime, []string{"example.com/keep"}
				}),
				&workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "crd"}},
			}}, finalizers: ownFinalizer, conditions: healthyConditions,
			want: []string{
				"it is still in spec.clusters of ResourceBinding shop/web: Scheduled=False (NoClusterFit): spread constraint cluster wants 2 clusters, 1 fits",
				"it is still in spec.clusters of ResourceBinding shop/api: spec.suspension.scheduling is true; set it to false, or take the cluster out of spec.clusters",
				`it is still in spec.clusters of ResourceBinding shop/job: it has no condition Scheduled, its spec.schedulerName is "mine"`,
				"it is still in spec.clusters of ResourceBinding shop/old: it is being deleted and has the finalizers example.com/keep",
				"it is still in spec.clusters of ClusterResourceBinding crd: it has no condition Scheduled",
				"it is still in spec.clusters of more bindings",
			}},
		"a finalizer of another owner": {
			finalizers: append([]string{"example.com/keep"}, ownFinalizer...), conditions: healthyConditions,
			want: []string{"finalizer example.com/keep of the Cluster: the controller that set it must remove it"}},
		"only the condition Ready": {
			leaving: DeletingCluster{ExecutionNamespace: terminating}, finalizers: ownFinalizer, conditions: []metav1.Condition{ready(metav1.ConditionFalse, "2 bindings list it")},
			want: []string{"the Cluster says Ready=False (R): 2 bindings list it"}},
		"only the condition Leaving": {
			leaving: DeletingCluster{ExecutionNamespace: terminating}, finalizers: ownFinalizer, conditions: []metav1.Condition{
				ready(metav1.ConditionFalse, "the cluster was deleted"),
				condition(clusterv1alpha1.ClusterConditionLeaving, metav1.ConditionTrue, "BindingsRemain", "remaining bindings: shop/web"),
			},
			want: []string{"the Cluster says Leaving=True (BindingsRemain): remaining bindings: shop/web"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.leaving.Cluster = &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "m1", Finalizers: tc.finalizers},
				Spec:       clusterv1alpha1.ClusterSpec{SyncMode: tc.mode},
				Status:     clusterv1alpha1.ClusterStatus{Conditions: tc.conditions},
			}
			if diff := cmp.Diff(tc.want, tc.leaving.Blockers(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("blockers (-want +got):\n%s", diff)
			}
		})
	}
}
