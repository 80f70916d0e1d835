package bindingstatus

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	domaincluster "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// unreadySince returns the time at which a cluster became not ready, or the zero time if the
// cluster is ready or has no Ready condition yet.
func unreadySince(cluster *clusterv1alpha1.Cluster) time.Time {
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// clusterStates returns the facts about the clusters of a binding that the aggregation needs.
func (r *reconciler) clusterStates(ctx context.Context, bound binding.Object, rendering work.Rendering) work.AggregateOptions {
	purged := binding.DirectlyPurgedClusters(bound.BindingSpec())
	for name := range purged {
		// A cluster that an administrator declared dead is not waited for, so it does not count as
		// a cluster to purge.
		if cluster := r.cachedCluster(ctx, name); cluster != nil && cluster.DeclaredDead() {
			purged.Delete(name)
		}
	}
	return work.AggregateOptions{
		RenderErrors: rendering.Failures(), PurgedClusters: purged, MaxStatusBytes: r.statusBytes,
		WantsNoCopy: placement.WantsNoCopy(bound.BindingSpec()),
		NotReadySince: func(name string) time.Time {
			if cluster := r.cachedCluster(ctx, name); cluster != nil {
				return unreadySince(cluster)
			}
			return time.Time{}
		},
		CredentialsProblem: func(name string) string {
			if cluster := r.cachedCluster(ctx, name); cluster != nil {
				return domaincluster.CredentialsProblem(cluster.Status.Conditions)
			}
			return ""
		},
	}
}

// cachedCluster returns the Cluster from the cache, or nil if the cache does not contain it.
func (r *reconciler) cachedCluster(ctx context.Context, name string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return cluster
}

// newClusterHandler returns a handler that queues the bindings with Works in a cluster that became
// unready or ready again, or that began or stopped to reject the credentials. It queues them at
// intervals and with low priority.
func (r *reconciler) newClusterHandler() handler.Funcs {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if !ok || !ok2 || hasSameReadiness(before, after) {
				return
			}
			if err := r.enqueueBindingsOf(ctx, after.Name, q); err != nil {
				klog.FromContext(ctx).Error(err, "Statuses of the cluster are not marked as old", "member", after.Name)
			}
		},
	}
}

// hasSameReadiness reports whether both versions of a Cluster lead to the same messages in
// bindings.
func hasSameReadiness(before, after *clusterv1alpha1.Cluster) bool {
	return unreadySince(before).Equal(unreadySince(after)) &&
		domaincluster.CredentialsProblem(before.Status.Conditions) == domaincluster.CredentialsProblem(after.Status.Conditions)
}

func (r *reconciler) enqueueBindingsOf(ctx context.Context, cluster string, q queue) error {
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Works of cluster %q: %w", cluster, err)
	}
	for i := range works.Items {
		if request, ok := bindingOfWork(&works.Items[i]); ok {
			if delay, ok := r.background.ReserveTurn(request, r.now()); ok {
				loop.EnqueueLowPriority(q, delay, request)
			}
		}
	}
	return nil
}
