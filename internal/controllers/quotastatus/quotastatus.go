// Package quotastatus reports the ResourceQuotas of the clusters in the status of their
// FederatedResourceQuota.
//
// If quotas are not enforced, it also reports the limits, and the sum of the clusters' usages. Otherwise
// package quotaenforcement reports these.
package quotastatus

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in logs and events.
const Name = "federated-resource-quota-status-controller"

// Options configure the controller.
type Options struct {
	// Workers is the number of quotas that are processed in parallel.
	Workers int
	// Enforced is the value of the feature gate FederatedQuotaEnforcement.
	Enforced bool
	// Events selects which events are recorded.
	Events loop.EventMode
	// Backoff is the exponential backoff for quotas that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: loop.DefaultBackoff()}
}

type reconciler struct {
	enforced bool
	karmada  client.Client
	events   *loop.Events
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), loop.WorksByQuota); err != nil {
		return err
	}
	r := &reconciler{enforced: o.Enforced, karmada: mgr.GetClient(), events: loop.EventsFor(mgr, Name, o.Events)}
	err := builder.ControllerManagedBy(mgr).Named(Name).
		For(&policyv1alpha1.FederatedResourceQuota{}, builder.WithPredicates(onlyChangedQuotas())).
		Watches(&workv1alpha1.Work{}, newWorkHandler()).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// onlyChangedQuotas returns a predicate that ignores updates of annotations, which the admission writes
// often.
func onlyChangedQuotas() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		older, ok := e.ObjectOld.(*policyv1alpha1.FederatedResourceQuota)
		newer, ok2 := e.ObjectNew.(*policyv1alpha1.FederatedResourceQuota)
		return ok && ok2 && (older.Generation != newer.Generation || !quota.HasEqualStatus(&older.Status, &newer.Status))
	}}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// newWorkHandler returns a handler that queues the quota of a Work that was changed or deleted.
func newWorkHandler() handler.EventHandler {
	enqueue := func(object client.Object, q queue) {
		if key, ok := loop.QuotaOfWork(object); ok {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &policyv1alpha1.FederatedResourceQuota{}
	if err := r.karmada.Get(ctx, request.NamespacedName, stored, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	list := &workv1alpha1.WorkList{}
	err := r.karmada.List(ctx, list, loop.WorksByQuota.Matching(request.String()), client.UnsafeDisableDeepCopy)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Works of FederatedResourceQuota %s: %w", request, err)
	}
	works := make([]*workv1alpha1.Work, len(list.Items))
	for i := range list.Items {
		works[i] = &list.Items[i]
	}
	return r.writeStatus(ctx, stored, quota.AggregateStatus(stored, works))
}

func (r *reconciler) writeStatus(
	ctx context.Context, stored *policyv1alpha1.FederatedResourceQuota, statuses []policyv1alpha1.ClusterQuotaStatus,
) (reconcile.Result, error) {
	reported := stored.DeepCopy()
	reported.Status.AggregatedStatus = statuses
	if !r.enforced {
		reported.Status.Overall, reported.Status.OverallUsed = reported.Spec.Overall, quota.TotalUsed(statuses)
	}
	if quota.HasEqualStatus(&stored.Status, &reported.Status) {
		return reconcile.Result{}, nil
	}
	_, err := patch.Status(ctx, r.karmada, stored, reported)
	switch {
	case err == nil:
		r.events.ClearFailure(stored, workv1alpha2.EventReasonAggregateStatusFailed)
		r.events.RecordSuccess(stored, workv1alpha2.EventReasonAggregateStatusSucceed, "Aggregated the status of %d clusters", len(statuses))
	case !loop.IsStale(err):
		r.events.RecordFailure(stored, workv1alpha2.EventReasonAggregateStatusFailed, err)
	}
	return loop.Result(client.IgnoreNotFound(err))
}
