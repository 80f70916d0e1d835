package unifiedauth

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/impersonation"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

func ignoreDelete(event.DeleteEvent) bool { return false }

// onlyImpersonatorChanges returns a predicate that selects new Clusters, and Clusters whose reference
// to the impersonator Secret changed.
func onlyImpersonatorChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && ok2 && !equality.Semantic.DeepEqual(older.Spec.ImpersonatorSecretRef, newer.Spec.ImpersonatorSecretRef)
		},
		DeleteFunc: ignoreDelete,
	}
}

// onlyCreated returns a predicate that selects objects that are created after the start. It ignores the
// initial list, because the Clusters' events already cause the first passes.
func onlyCreated() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: ignoreDelete,
	}
}

// newWorkHandler returns a handler that queues the Cluster of a deleted Work. In pull mode, the Work is
// created again only after a delay.
func (r *reconciler) newWorkHandler() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q loop.Queue[reconcile.Request]) {
		for _, request := range requestForWork(e.Object) {
			q.AddAfter(request, loop.RecreationDelay(ctx, r.karmada, e.Object))
		}
	}}
}

// onlyAccessRoleChanges returns a predicate that selects ClusterRoles whose rules changed and that
// grant or granted access to a cluster.
func onlyAccessRoleChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList && givesAccess(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return haveDifferentFields(e.ObjectOld, e.ObjectNew, "rules") && (givesAccess(e.ObjectOld) || givesAccess(e.ObjectNew))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return givesAccess(e.Object) },
	}
}

// onlyAccessBindingChanges returns a predicate that selects created, changed and deleted
// ClusterRoleBindings whose role grants access to a cluster. If the role does not exist yet, the event
// of its creation causes a pass.
func (r *reconciler) onlyAccessBindingChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList && r.bindsAccessRole(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			// Compare roleRef although it is immutable, because the ClusterRoleBinding may have been
			// deleted and created again while the watch was interrupted.
			return haveDifferentFields(e.ObjectOld, e.ObjectNew, "subjects", "roleRef") &&
				(r.bindsAccessRole(e.ObjectOld) || r.bindsAccessRole(e.ObjectNew))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return r.bindsAccessRole(e.Object) },
	}
}

// bindsAccessRole reports whether the role to which a binding refers grants access to a cluster.
func (r *reconciler) bindsAccessRole(object client.Object) bool {
	binding, ok := object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	role := newUnstructured(clusterRoles)
	// A predicate receives no context. The call does not block, because it reads from a cache.
	err := r.readFromCache(context.Background(), types.NamespacedName{Name: roleNameOf(binding)}, role)
	return err == nil && givesAccess(role)
}

// givesAccess reports whether a ClusterRole grants access to a cluster. It returns true for a
// ClusterRole that cannot be parsed, so that the pass reports the error.
func givesAccess(object client.Object) bool {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	role, err := roleOf(content)
	return err != nil || impersonation.AllowsAnyCluster(role.Rules)
}

func haveDifferentFields(older, newer client.Object, fields ...string) bool {
	before, ok := older.(*unstructured.Unstructured)
	after, ok2 := newer.(*unstructured.Unstructured)
	if !ok || !ok2 {
		return false
	}
	for _, field := range fields {
		if !equality.Semantic.DeepEqual(before.Object[field], after.Object[field]) {
			return true
		}
	}
	return false
}

func (r *reconciler) requestsForAllClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &clusterv1alpha1.ClusterList{}
	if err := r.karmada.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		// Only log the error, because a read from a cache fails only when the process ends.
		log.FromContext(ctx).Error(err, "cannot enqueue clusters")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, requestFor(list.Items[i].Name)...)
	}
	return requests
}

// requestForNamespace returns a request for the Cluster whose execution namespace is the given
// Namespace.
func requestForNamespace(_ context.Context, namespace client.Object) []reconcile.Request {
	if cluster, ok := work.ClusterOf(namespace.GetName()); ok {
		return requestFor(cluster)
	}
	return nil
}

// requestForWork returns a request for the Cluster of a Work that this controller created.
func requestForWork(object client.Object) []reconcile.Request {
	switch object.GetName() {
	case work.Name(clusterRoles.Kind, "", impersonation.ImpersonatorName),
		work.Name(clusterRoleBindings.Kind, "", impersonation.ImpersonatorName):
	default:
		return nil
	}
	if cluster, ok := work.ClusterOf(object.GetNamespace()); ok {
		return requestFor(cluster)
	}
	return nil
}

func requestFor(cluster string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster}}}
}
