package descheduler

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Reconcile implements reconcile.Reconciler.
func (d *descheduler) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	stored, err := d.readBinding(ctx, r)
	if err != nil || stored == nil {
		return loop.Result(err)
	}
	unschedulable := d.unschedulableReplicas(ctx, stored.Spec.Resource, candidatesOf(stored, d.findCluster(ctx)))
	if len(unschedulable) == 0 {
		return reconcile.Result{}, nil
	}
	// Estimators may take seconds, so the binding is read again. The estimates apply only to the
	// generation for which they were requested.
	latest, err := d.readBinding(ctx, r)
	if err != nil || latest == nil {
		return loop.Result(err)
	}
	if latest.UID != stored.UID || latest.Generation != stored.Generation {
		return loop.Result(loop.ErrStale)
	}
	removals := removalsFor(candidatesOf(latest, d.findCluster(ctx)), unschedulable)
	return loop.Result(client.IgnoreNotFound(d.removeReplicas(ctx, r, latest, removals)))
}

// unschedulableReplicas asks the candidates' estimators, and returns the number of unschedulable
// replicas by cluster. Clusters without unschedulable replicas are left out.
func (d *descheduler) unschedulableReplicas(
	ctx context.Context, workload workv1alpha2.ObjectReference, candidates []candidate,
) map[string]int32 {
	if len(candidates) == 0 {
		return nil
	}
	clusters := make([]string, len(candidates))
	for i := range candidates {
		clusters[i] = candidates[i].Cluster
	}
	estimates := d.estimator.UnschedulableReplicas(ctx, workload, d.options.UnschedulableThreshold, clusters)
	counts := map[string]int32{}
	for i := range min(len(clusters), len(estimates)) {
		switch estimate := estimates[i]; {
		case estimate.Err != nil:
			// The error is only logged, because the cluster keeps its replicas and the next search
			// asks again.
			klog.FromContext(ctx).V(1).Info("Ignoring an estimator that returned an error", "member", clusters[i], "reason", estimate.Err.Error())
		case estimate.Count > 0:
			counts[clusters[i]] = estimate.Count
		}
	}
	return counts
}

// removeReplicas writes the binding without the removed replicas, and records the outcome in events.
func (d *descheduler) removeReplicas(
	ctx context.Context, r reconcile.Request, stored *workv1alpha2.ResourceBinding, removals []removal,
) error {
	if len(removals) == 0 {
		return nil
	}
	desired := binding.Copy(stored)
	desired.BindingSpec().Clusters = lowerTargets(stored.Spec.Clusters, removals)
	if _, err := patch.Object(ctx, d.karmada, stored, desired); err != nil {
		d.recordFailure(r, stored, err)
		return err
	}
	d.ownWrites.Record(r, desired)
	for _, object := range []client.Object{desired, binding.TemplateReference(desired)} {
		d.events.ClearFailure(object, workv1alpha2.EventReasonDescheduleBindingFailed)
		d.events.RecordDecision(object, workv1alpha2.EventReasonDescheduleBindingSucceed, "%s", removalMessage(removals))
	}
	klog.FromContext(ctx).Info("Descheduled", "removals", fmt.Sprint(removals))
	return nil
}

// recordFailure records in events why a binding could not be written. It records no conflict, because
// the reconcile is repeated with the newer binding.
func (d *descheduler) recordFailure(r reconcile.Request, stored *workv1alpha2.ResourceBinding, err error) {
	switch {
	case apierrors.IsConflict(err):
		// The API server may have lost the tracked write, for example because a backup was restored.
		// The cache would then never show it.
		d.ownWrites.Forget(r)
	case !apierrors.IsNotFound(err):
		d.events.RecordFailure(stored, workv1alpha2.EventReasonDescheduleBindingFailed, err)
		d.events.RecordFailure(binding.TemplateReference(stored), workv1alpha2.EventReasonDescheduleBindingFailed, err)
	}
}
