// Package quotaenforcement reports, in the status of each FederatedResourceQuota, what the bindings of its
// namespace use.
//
// The admission decides which bindings fit, and does not read this status. The scheduler tries refused
// bindings again when the status shows more room. Each pass processes one namespace, and a change of a
// binding processes only its own namespace.
package quotaenforcement

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in logs and events.
const Name = "federated-resource-quota-enforcement-controller"

// collectDelay is how long changes of bindings are collected before the usage is computed and written.
const collectDelay = 200 * time.Millisecond

// Options configure the controller.
type Options struct {
	// Workers is the number of namespaces that are processed in parallel.
	Workers int
	// Period is the interval at which the usage of each namespace is computed again even if nothing has
	// changed.
	Period time.Duration
	// Events selects which events are recorded.
	Events loop.EventMode
	// Backoff is the exponential backoff for namespaces that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Period: 5 * time.Minute, Backoff: loop.DefaultBackoff()}
}

type reconciler struct {
	period  time.Duration
	karmada client.Client
	events  *loop.Events
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{period: o.Period, karmada: mgr.GetClient(), events: loop.EventsFor(mgr, Name, o.Events)}
	err := builder.ControllerManagedBy(mgr).Named(Name).
		Watches(&policyv1alpha1.FederatedResourceQuota{}, newQuotaHandler()).
		Watches(&workv1alpha2.ResourceBinding{}, newBindingHandler()).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler. The request contains only a namespace.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	quotas := &policyv1alpha1.FederatedResourceQuotaList{}
	if err := r.karmada.List(ctx, quotas, client.InNamespace(request.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the quotas of namespace %s: %w", request.Namespace, err)
	}
	if len(quotas.Items) == 0 {
		return reconcile.Result{}, nil
	}
	usage, err := r.readUsage(ctx, request.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	var failures []error
	for i := range quotas.Items {
		failures = append(failures, r.writeUsage(ctx, &quotas.Items[i], usage))
	}
	if err := errors.Join(failures...); err != nil {
		return loop.Result(err)
	}
	return reconcile.Result{RequeueAfter: r.period}, nil
}

// readUsage returns the usage of all bindings in a namespace, including those that are being deleted.
func (r *reconciler) readUsage(ctx context.Context, namespace string) (corev1.ResourceList, error) {
	bindings := &workv1alpha2.ResourceBindingList{}
	if err := r.karmada.List(ctx, bindings, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the bindings of namespace %s: %w", namespace, err)
	}
	usage := corev1.ResourceList{}
	for i := range bindings.Items {
		quota.AddUsage(usage, quota.BindingUsage(&bindings.Items[i].Spec))
	}
	return usage, nil
}

func (r *reconciler) writeUsage(ctx context.Context, stored *policyv1alpha1.FederatedResourceQuota, usage corev1.ResourceList) error {
	reported := stored.DeepCopy()
	reported.Status.Overall, reported.Status.OverallUsed = reported.Spec.Overall, quota.UsageOf(stored, usage)
	if quota.HasEqualStatus(&stored.Status, &reported.Status) {
		return nil
	}
	_, err := patch.Status(ctx, r.karmada, stored, reported)
	switch {
	case err == nil:
		r.events.ClearFailure(stored, policyv1alpha1.EventReasonCollectOverallStatusFailed)
		r.events.RecordSuccess(stored, policyv1alpha1.EventReasonCollectOverallStatusSucceed, "Computed the usage of the namespace")
	case !loop.IsStale(err):
		r.events.RecordFailure(stored, policyv1alpha1.EventReasonCollectOverallStatusFailed, err)
	}
	return client.IgnoreNotFound(err)
}
