// Package remedy writes the actions that Remedies require to the status of the Clusters that they
// match.
//
// Controllers outside of the control plane perform the actions. An action stays in the status only as
// long as a Remedy requires it. All Clusters are checked at the start of the process, because Remedies
// may have been deleted while it was not running.
package remedy

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in flags and logs.
const Name = "remedy-controller"

// Options configure the controller.
type Options struct {
	// Workers is the number of Clusters that are processed in parallel.
	Workers int
	// Backoff is the backoff for Clusters that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: loop.DefaultBackoff()}
}

type reconciler struct{ karmada client.Client }

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{karmada: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named(Name).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(onlyRelevantClusters())).
		Watches(&remedyv1alpha1.Remedy{}, r.newRemedyHandler()).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. The status of a Cluster has several writers, so the write
// fails if another writer has changed the Cluster since it was read.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, request.NamespacedName, stored, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if stored.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	remedies := &remedyv1alpha1.RemedyList{}
	if err := r.karmada.List(ctx, remedies, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing Remedies: %w", err)
	}
	actions := cluster.RemedyActions(stored, remedies.Items)
	if slices.Equal(stored.Status.RemedyActions, actions) {
		return reconcile.Result{}, nil
	}
	reported := stored.DeepCopy()
	reported.Status.RemedyActions = actions
	_, err := patch.Status(ctx, r.karmada, stored, reported)
	return loop.Result(client.IgnoreNotFound(err))
}
