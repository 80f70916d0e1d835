// Package clustertaintpolicy answers "does each cluster bear the taints that
// policies want for its conditions?": it adds and removes taints of Clusters as
// ClusterTaintPolicies say.
//
// A policy that is deleted or changed takes no taint back: a taint is removed only
// by a condition that asks for it.
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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/domain/taint"
)

// Name is the name of the controller in flags, logs and events.
const Name = "cluster-taint-policy-controller"

// again is when a write that lost a race is tried again: the cache shows by then
// what won it.
const again = 100 * time.Millisecond

// Options are what operators may tune.
type Options struct {
	// Workers is how many Clusters are worked on at once.
	Workers int
	// Backoff is that of a Cluster that failed.
	Backoff queues.Backoff
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: queues.DefaultBackoff()}
}

type reconciler struct {
	karmada client.Client
	events  *observe.Events
	now     func() time.Time
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(), now: time.Now,
		events: observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
	}
	return builder.ControllerManagedBy(mgr).Named(Name).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(concerned())).
		Watches(&policyv1alpha1.ClusterTaintPolicy{}, r.onPolicy()).
		WithOptions(queues.Options[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, request.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	policies := &policyv1alpha1.ClusterTaintPolicyList{}
	if err := r.karmada.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing ClusterTaintPolicies: %w", err)
	}
	tainted := cluster.DeepCopy()
	tainted.Spec.Taints = taint.ByPolicies(cluster, policies.Items, metav1.NewTime(r.now()))
	if equality.Semantic.DeepEqual(cluster.Spec.Taints, tainted.Spec.Taints) {
		return reconcile.Result{}, nil
	}
	return r.write(ctx, cluster, tainted)
}

// write stores the taints. A write that lost a race is tried again on what is
// stored then, and nobody hears of it.
func (r *reconciler) write(ctx context.Context, cluster, tainted *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	_, err := patch.Object(ctx, r.karmada, cluster, tainted)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: again}, nil
	case err != nil:
		r.events.Failed(cluster, clusterv1alpha1.EventReasonTaintClusterFailed, err)
		return reconcile.Result{}, err
	}
	r.events.Recovered(tainted, clusterv1alpha1.EventReasonTaintClusterFailed)
	r.events.Decided(tainted, clusterv1alpha1.EventReasonTaintClusterSucceed,
		"ClusterTaintPolicies: taints are now [%s], before [%s]", listed(tainted.Spec.Taints), listed(cluster.Spec.Taints))
	return reconcile.Result{}, nil
}

func listed(taints []corev1.Taint) string {
	texts := make([]string, 0, len(taints))
	for i := range taints {
		texts = append(texts, taints[i].ToString())
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}
