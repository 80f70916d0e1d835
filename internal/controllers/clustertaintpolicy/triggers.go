package clustertaintpolicy

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
)

// onlyRelevantClusters returns a predicate that selects new clusters, and updates of a cluster
// after which policies may require other taints for it.
func onlyRelevantClusters() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && ok2 && cluster.NeedsTaintUpdate(older, newer)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// newPolicyHandler returns a handler that queues the clusters that a policy targets, or targeted
// before the policy changed.
func (r *reconciler) newPolicyHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if policy, ok := e.Object.(*policyv1alpha1.ClusterTaintPolicy); ok {
				r.enqueueTargets(ctx, q, policy)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*policyv1alpha1.ClusterTaintPolicy)
			newer, ok2 := e.ObjectNew.(*policyv1alpha1.ClusterTaintPolicy)
			if ok && ok2 && !equality.Semantic.DeepEqual(older.Spec, newer.Spec) {
				r.enqueueTargets(ctx, q, older, newer)
			}
		},
	}
}

func (r *reconciler) enqueueTargets(ctx context.Context, q queue, policies ...*policyv1alpha1.ClusterTaintPolicy) {
	clusters := &clusterv1alpha1.ClusterList{}
	if err := r.karmada.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot list the clusters of a ClusterTaintPolicy", "policy", policies[0].Name)
		return
	}
	for i := range clusters.Items {
		for _, policy := range policies {
			if cluster.IsTaintPolicyTarget(policy, &clusters.Items[i]) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
				break
			}
		}
	}
}
