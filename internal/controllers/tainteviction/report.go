package tainteviction

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// reporter reports on each Cluster with a NoExecute taint whether such taints evict workloads.
// Only karmada-controller-manager knows its flags, so without the condition a user could not see why
// a taint evicts nothing.
type reporter struct {
	karmada      client.Client
	missingFlags []string
	now          func() time.Time
}

func (r *reporter) addController(mgr manager.Manager, backoff loop.Backoff) error {
	return builder.ControllerManagedBy(mgr).Named(Name+"-report").
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(predicate.NewPredicateFuncs(needsReport))).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, 1, backoff)).
		Complete(r)
}

// needsReport reports whether a Cluster has a NoExecute taint, or a report about an earlier one.
func needsReport(object client.Object) bool {
	cluster, ok := object.(*clusterv1alpha1.Cluster)
	return ok && (failover.HasEvictingTaint(cluster) ||
		conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionTaintsEvict) != nil)
}

// Reconcile implements reconcile.Reconciler.
func (r *reporter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, request.NamespacedName, stored); err != nil || stored.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	reported := stored.DeepCopy()
	failover.SetTaintsEvict(reported, r.missingFlags, metav1.NewTime(r.now()))
	if _, err := patch.Status(ctx, r.karmada, stored, reported); client.IgnoreNotFound(err) != nil {
		return loop.Result(fmt.Errorf("reporting whether taints of cluster %q evict workloads: %w", stored.Name, err))
	}
	return reconcile.Result{}, nil
}
