package clustertaintpolicy

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop"
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

type queue = loop.Queue[reconcile.Request]

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
	loop.EnqueueClusters(ctx, r.karmada, q, "ClusterTaintPolicy "+policies[0].Name, func(target *clusterv1alpha1.Cluster) bool {
		return slices.ContainsFunc(policies, func(policy *policyv1alpha1.ClusterTaintPolicy) bool {
			return cluster.IsTaintPolicyTarget(policy, target)
		})
	})
}
