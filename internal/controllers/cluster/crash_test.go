package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/loop/looptest"
)

// finishNamespaceDeletion acts as the namespace controller: it removes a namespace that is being
// deleted when the namespace is empty.
func finishNamespaceDeletion(ctx context.Context, others client.Client) error {
	executionNamespace, works := &corev1.Namespace{}, &workv1alpha1.WorkList{}
	if err := others.Get(ctx, client.ObjectKey{Name: "karmada-es-member1"}, executionNamespace); err != nil || executionNamespace.DeletionTimestamp == nil {
		return client.IgnoreNotFound(err)
	}
	if err := others.List(ctx, works, client.InNamespace(executionNamespace.Name)); err != nil || len(works.Items) > 0 {
		return err
	}
	executionNamespace.Finalizers = nil
	return others.Update(ctx, executionNamespace)
}

// finishWorkDeletion acts as the execution controller: it removes the finalizer of Works that are
// being deleted.
func finishWorkDeletion(ctx context.Context, others client.Client) error {
	works := &workv1alpha1.WorkList{}
	if err := others.List(ctx, works); err != nil {
		return err
	}
	for i := range works.Items {
		if works.Items[i].DeletionTimestamp == nil {
			continue
		}
		works.Items[i].Finalizers = nil
		if err := others.Update(ctx, &works.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func withoutExecutor(context.Context, client.Client) error { return nil }

func TestAdditionAndRemovalSurviveCrashesAroundWrites(t *testing.T) {
	tests := map[string]struct {
		cluster  clusterv1alpha1.Cluster
		stored   []client.Object
		executor func(context.Context, client.Client) error
		end      string
	}{
		"a new cluster": {executor: withoutExecutor, end: "Cluster member1 [karmada.io/cluster-controller] cluster.karmada.io/not-ready:NoSchedule, Namespace karmada-es-member1"},
		"a cluster in removal": {
			cluster:  newClusterInDeletion(clusterv1alpha1.Push, metav1.ConditionTrue),
			stored:   []client.Object{withFinalizer(newNamespace("karmada-es-member1")), newWork("member1", "web", false), newWork("member1", "db", false)},
			executor: finishWorkDeletion,
		},
		"a cluster in removal with a lost agent": {
			cluster:  newClusterInDeletion(clusterv1alpha1.Pull, metav1.ConditionUnknown),
			stored:   []client.Object{withFinalizer(newNamespace("karmada-es-member1")), newWork("member1", "web", false), newWork("member1", "db", false)},
			executor: withoutExecutor,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			looptest.CrashCase{
				NewStore: func() client.WithWatch {
					stored := tc.cluster.DeepCopy()
					stored.Name = "member1"
					return newStore(t, append([]client.Object{stored}, tc.stored...)...)
				},
				NewLoop: func(karmada, others client.WithWatch) func(context.Context) error {
					r := newReconciler(karmada)
					return func(ctx context.Context) error {
						_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: "member1"}})
						return errors.Join(err, tc.executor(ctx, others), finishNamespaceDeletion(ctx, others))
					}
				},
				FinalState: func(ctx context.Context, from client.Reader) (string, error) {
					end, err := describeStore(ctx, from)
					if err == nil && end != tc.end {
						err = fmt.Errorf("the final state is %q, want %q", end, tc.end)
					}
					return end, err
				},
			}.Run(t)
		})
	}
}

func newClusterInDeletion(mode clusterv1alpha1.ClusterSyncMode, ready metav1.ConditionStatus) clusterv1alpha1.Cluster {
	created := clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	created.DeletionTimestamp, created.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{clusterv1alpha1.ClusterControllerFinalizer}
	created.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready}}
	return created
}

// describeStore describes all stored objects.
func describeStore(ctx context.Context, from client.Reader) (string, error) {
	clusters, spaces, works := &clusterv1alpha1.ClusterList{}, &corev1.NamespaceList{}, &workv1alpha1.WorkList{}
	if err := errors.Join(from.List(ctx, clusters), from.List(ctx, spaces), from.List(ctx, works)); err != nil {
		return "", err
	}
	var all []string
	for _, each := range clusters.Items {
		all = append(all, fmt.Sprintf("Cluster %s %s %s", each.Name, each.Finalizers, formatTaints(each.Spec.Taints)))
	}
	for _, each := range spaces.Items {
		all = append(all, "Namespace "+each.Name)
	}
	for _, each := range works.Items {
		all = append(all, "Work "+each.Name)
	}
	return strings.Join(all, ", "), nil
}
