package gracefuleviction

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// leavingField of a binding is the name of each cluster that its workload leaves or
// may be waiting for.
const leavingField = Name + "/cluster"

func index(indexer client.FieldIndexer) error {
	for _, of := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		if err := indexer.IndexField(context.Background(), of, leavingField, concerned); err != nil {
			return fmt.Errorf("indexing bindings by %s: %w", leavingField, err)
		}
	}
	return nil
}

// concerned are the clusters that bear on the evictions of a binding; none when it
// has none, as nearly all.
func concerned(of client.Object) []string {
	bound, ok := of.(binding.Object)
	if !ok || len(bound.BindingSpec().GracefulEvictionTasks) == 0 {
		return nil
	}
	var names []string
	for _, task := range bound.BindingSpec().GracefulEvictionTasks {
		names = append(names, task.FromCluster)
	}
	for _, target := range bound.BindingSpec().Clusters {
		names = append(names, target.Name)
	}
	return names
}

// underEviction leaves out bindings without a task, unless something is still said
// of one.
func underEviction() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		bound, ok := object.(binding.Object)
		return ok && (len(bound.BindingSpec().GracefulEvictionTasks) > 0 ||
			conditions.Get(bound.BindingStatus().Conditions, workv1alpha2.EvictionHeld) != nil)
	})
}

// onCluster looks at the evictions from and to a cluster that is ready, tainted or
// given up otherwise than before, or gone.
func (r *reconciler) onCluster() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if ok && ok2 && differs(older, newer) {
				r.push(ctx, q, newer.Name)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.push(ctx, q, e.Object.GetName()) },
	}
}

func differs(older, newer *clusterv1alpha1.Cluster) bool {
	return !equality.Semantic.DeepEqual(older.Spec.Taints, newer.Spec.Taints) ||
		older.DeclaredDead() != newer.DeclaredDead() || isReady(older) != isReady(newer)
}

func isReady(cluster *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

func (r *reconciler) push(ctx context.Context, q queue, cluster string) {
	var list client.ObjectList = &workv1alpha2.ClusterResourceBindingList{}
	if r.namespaced {
		list = &workv1alpha2.ResourceBindingList{}
	}
	err := r.karmada.List(ctx, list, client.MatchingFields{leavingField: cluster}, client.UnsafeDisableDeepCopy)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if bound, ok := item.(client.Object); ok {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)})
			}
			return nil
		})
	}
	if err != nil {
		// A cache answers unless the process ends or an index is missing.
		klog.FromContext(ctx).Error(fmt.Errorf("listing bindings: %w", err), "Evictions are not looked at", "member", cluster)
	}
}
