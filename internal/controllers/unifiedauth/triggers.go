package unifiedauth

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/remake"
	"karmada.io/karmada/internal/domain/impersonation"
	"karmada.io/karmada/internal/domain/work"
)

func never(event.DeleteEvent) bool { return false }

// referenced passes Clusters that are new or refer to another impersonator.
func referenced() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && ok2 && !equality.Semantic.DeepEqual(older.Spec.ImpersonatorSecretRef, newer.Spec.ImpersonatorSecretRef)
		},
		DeleteFunc: never,
	}
}

// appeared passes what is new since the start: what was there before is met
// through the Clusters.
func appeared() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: never,
	}
}

// onWork looks at the Cluster of a Work that was deleted. In a cluster that pulls the
// Work is made again after a pause.
func (r *reconciler) onWork() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range clusterOfWork(e.Object) {
			q.AddAfter(request, remake.Delay(ctx, r.karmada, e.Object))
		}
	}}
}

// ruled passes ClusterRoles that open or opened the way to a cluster, and whose
// rules changed.
func ruled() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList && concerns(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return differ(e.ObjectOld, e.ObjectNew, "rules") && (concerns(e.ObjectOld) || concerns(e.ObjectNew))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return concerns(e.Object) },
	}
}

// bound passes ClusterRoleBindings to such a role whose subjects changed. If the
// role is not there, its coming or going is what counts.
func (r *reconciler) bound() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList && r.binds(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			// A binding that was deleted and made again between two looks may bind
			// to another role.
			return differ(e.ObjectOld, e.ObjectNew, "subjects", "roleRef") && (r.binds(e.ObjectOld) || r.binds(e.ObjectNew))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return r.binds(e.Object) },
	}
}

// binds tells whether a binding's role opens the way to a cluster.
func (r *reconciler) binds(object client.Object) bool {
	binding, ok := object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	role := empty(clusterRoles)
	// Predicates have no context; a cache answers at once.
	err := r.read(context.Background(), types.NamespacedName{Name: roleNameOf(binding)}, role)
	return err == nil && concerns(role)
}

// concerns tells whether a ClusterRole opens the way to a cluster. One that cannot
// be understood does; the reconcile tells of it.
func concerns(object client.Object) bool {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	role, err := roleOf(content)
	return err != nil || impersonation.Concerns(role.Rules)
}

func differ(older, newer client.Object, fields ...string) bool {
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

// everyCluster asks for all Clusters.
func (r *reconciler) everyCluster(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &clusterv1alpha1.ClusterList{}
	if err := r.karmada.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		// A cache answers unless the process ends.
		log.FromContext(ctx).Error(err, "clusters are not looked at")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, ask(list.Items[i].Name)...)
	}
	return requests
}

// clusterOfSpace asks for the Cluster whose execution namespace that is.
func clusterOfSpace(_ context.Context, namespace client.Object) []reconcile.Request {
	if cluster, ok := work.ClusterOf(namespace.GetName()); ok {
		return ask(cluster)
	}
	return nil
}

// clusterOfWork asks for the Cluster that a Work of this controller was for.
func clusterOfWork(object client.Object) []reconcile.Request {
	switch object.GetName() {
	case work.Name(clusterRoles.Kind, "", impersonation.Name), work.Name(clusterRoleBindings.Kind, "", impersonation.Name):
	default:
		return nil
	}
	if cluster, ok := work.ClusterOf(object.GetNamespace()); ok {
		return ask(cluster)
	}
	return nil
}

func ask(cluster string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster}}}
}
