// Package clustertaintpolicy adds and removes taints of Clusters according to
// ClusterTaintPolicies.
//
// When a policy is deleted or changed, the taints that it added are kept. A taint is removed only
// if a condition of a policy requires the removal.
package clustertaintpolicy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in flags, logs and events.
const Name = "cluster-taint-policy-controller"

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

type reconciler struct {
	karmada client.Client
	events  *loop.Events
	now     func() time.Time
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(), now: time.Now,
		events: loop.EventsFor(mgr, Name, loop.EventModeChanges),
	}
	return builder.ControllerManagedBy(mgr).Named(Name).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(onlyRelevantClusters())).
		Watches(&policyv1alpha1.ClusterTaintPolicy{}, r.newPolicyHandler()).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, request.NamespacedName, stored); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if stored.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	policies := &policyv1alpha1.ClusterTaintPolicyList{}
	if err := r.karmada.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing ClusterTaintPolicies: %w", err)
	}
	tainted := stored.DeepCopy()
	tainted.Spec.Taints = cluster.ApplyTaintPolicies(stored, policies.Items, metav1.NewTime(r.now()))
	if equality.Semantic.DeepEqual(stored.Spec.Taints, tainted.Spec.Taints) {
		return reconcile.Result{}, nil
	}
	return r.writeTaints(ctx, stored, tainted)
}

// writeTaints stores the taints. After a conflict the Cluster is queued again without an event.
func (r *reconciler) writeTaints(ctx context.Context, cluster, tainted *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	_, err := patch.Object(ctx, r.karmada, cluster, tainted)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case loop.IsStale(err):
		return loop.Result(err)
	case err != nil:
		r.events.RecordFailure(cluster, clusterv1alpha1.EventReasonTaintClusterFailed, err)
		return reconcile.Result{}, err
	}
	r.events.ClearFailure(tainted, clusterv1alpha1.EventReasonTaintClusterFailed)
	r.events.RecordDecision(tainted, clusterv1alpha1.EventReasonTaintClusterSucceed,
		"ClusterTaintPolicies: taints are now [%s], before [%s]", formatTaints(tainted.Spec.Taints), formatTaints(cluster.Spec.Taints))
	return reconcile.Result{}, nil
}

func formatTaints(taints []corev1.Taint) string {
	texts := make([]string, 0, len(taints))
	for i := range taints {
		texts = append(texts, taints[i].ToString())
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}
