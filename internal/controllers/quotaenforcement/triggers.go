package quotaenforcement

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/quota"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func requestFor(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace()}}
}

// newQuotaHandler returns a handler that queues the namespace of a quota that was created, or whose
// limits or reported usage changed.
func newQuotaHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.Add(requestFor(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*policyv1alpha1.FederatedResourceQuota)
			newer, ok2 := e.ObjectNew.(*policyv1alpha1.FederatedResourceQuota)
			if ok && ok2 && (older.Generation != newer.Generation || !quota.HasEqualStatus(&older.Status, &newer.Status)) {
				q.Add(requestFor(newer))
			}
		},
	}
}

// newBindingHandler returns a handler that queues the namespace of a binding whose usage changed.
// Changes of several bindings are collected. The initial list is ignored, because the quotas are queued
// at the start.
func newBindingHandler() handler.EventHandler {
	enqueue := func(q queue, object client.Object, before, after *workv1alpha2.ResourceBindingSpec) {
		if !quota.IsEqual(quota.BindingUsage(before), quota.BindingUsage(after)) {
			q.AddAfter(requestFor(object), collectDelay)
		}
	}
	none := &workv1alpha2.ResourceBindingSpec{}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if created, ok := e.Object.(*workv1alpha2.ResourceBinding); ok && !e.IsInInitialList {
				enqueue(q, created, none, &created.Spec)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*workv1alpha2.ResourceBinding)
			newer, ok2 := e.ObjectNew.(*workv1alpha2.ResourceBinding)
			if ok && ok2 && older.Generation != newer.Generation {
				enqueue(q, newer, &older.Spec, &newer.Spec)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if deleted, ok := e.Object.(*workv1alpha2.ResourceBinding); ok {
				enqueue(q, deleted, &deleted.Spec, none)
			}
		},
	}
}
