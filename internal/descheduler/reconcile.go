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
	"karmada.io/karmada/internal/domain/descheduling"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Reconcile implements reconcile.Reconciler.
func (d *descheduler) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	stored, err := d.read(ctx, r)
	if err != nil || stored == nil {
		return loop.Result(err)
	}
	unschedulable := d.unschedulableReplicas(ctx, stored.Spec.Resource, descheduling.Candidates(stored, d.findCluster(ctx)))
	if len(unschedulable) == 0 {
		return reconcile.Result{}, nil
	}
	// The binding is read again, because estimators may take seconds, and its status changes often.
	// The answers are valid only for the replicas for which they were requested.
	latest, err := d.read(ctx, r)
	if err != nil || latest == nil {
		return loop.Result(err)
	}
	if latest.UID != stored.UID || latest.Generation != stored.Generation {
		return loop.Result(loop.ErrStale)
	}
	removals := descheduling.Removals(descheduling.Candidates(latest, d.findCluster(ctx)), unschedulable)
	return loop.Result(client.IgnoreNotFound(d.remove(ctx, r, latest, removals)))
}

// unschedulableReplicas asks the estimators of the candidates. It returns the number of
// unschedulable replicas of each cluster that has such replicas.
func (d *descheduler) unschedulableReplicas(ctx context.Context, workload workv1alpha2.ObjectReference, candidates []descheduling.Candidate) map[string]int32 {
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
			// The error is logged only here, because the replicas of the cluster stay and the next
			// search asks again.
			klog.FromContext(ctx).V(1).Info("Ignoring an estimator that returned an error", "member", clusters[i], "reason", estimate.Err.Error())
		case estimate.Count > 0:
			counts[clusters[i]] = estimate.Count
		}
	}
	return counts
}

// remove writes the binding without the removed replicas, and records the outcome in events.
func (d *descheduler) remove(ctx context.Context, r reconcile.Request, stored *workv1alpha2.ResourceBinding, removals []descheduling.Removal) error {
	if len(removals) == 0 {
		return nil
	}
	desired := binding.Copy(stored)
	desired.BindingSpec().Clusters = descheduling.Lower(stored.Spec.Clusters, removals)
	if _, err := patch.Object(ctx, d.karmada, stored, desired); err != nil {
		d.recordFailure(r, stored, err)
		return err
	}
	d.ownWrites.Record(r, desired)
	for _, object := range []client.Object{desired, binding.TemplateReference(desired)} {
		d.events.ClearFailure(object, workv1alpha2.EventReasonDescheduleBindingFailed)
		d.events.RecordDecision(object, workv1alpha2.EventReasonDescheduleBindingSucceed, "%s", descheduling.Message(removals))
	}
	klog.FromContext(ctx).Info("Descheduled", "removals", fmt.Sprint(removals))
	return nil
}

// recordFailure records why a binding could not be written. A conflict is not recorded, because the
// pass is repeated with the newer binding.
func (d *descheduler) recordFailure(r reconcile.Request, stored *workv1alpha2.ResourceBinding, err error) {
	switch {
	case apierrors.IsConflict(err):
		// The tracked write is dropped, because the API server may have lost it, for example after
		// the restore of a backup.
		d.ownWrites.Forget(r)
	case !apierrors.IsNotFound(err):
		d.events.RecordFailure(stored, workv1alpha2.EventReasonDescheduleBindingFailed, err)
		d.events.RecordFailure(binding.TemplateReference(stored), workv1alpha2.EventReasonDescheduleBindingFailed, err)
	}
}
