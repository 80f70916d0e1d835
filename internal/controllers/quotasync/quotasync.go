// Package quotasync propagates the static assignments of FederatedResourceQuotas: each cluster with an
// assignment gets a Work with a ResourceQuota of the same name and namespace.
//
// A cluster that does not exist yet gets its Work when it is registered. The Works of a quota that is
// deleted, or of a cluster without an assignment, are deleted after the API server has confirmed the
// reason.
package quotasync

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in logs and events.
const Name = "federated-resource-quota-sync-controller"

// Options configure the controller.
type Options struct {
	// Workers is the number of quotas that are processed in parallel.
	Workers int
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
	karmada client.Client
	live    client.Reader
	events  *loop.Events
}

// quotasByCluster finds the quotas with an assignment for a cluster.
var quotasByCluster = loop.Index{
	Name: "quotas/cluster", Types: []client.Object{&policyv1alpha1.FederatedResourceQuota{}}, Keys: assignedClusters,
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), loop.WorksByQuota, quotasByCluster); err != nil {
		return err
	}
	r := &reconciler{karmada: mgr.GetClient(), live: mgr.GetAPIReader(), events: loop.EventsFor(mgr, Name, o.Events)}
	err := builder.ControllerManagedBy(mgr).Named(Name).
		For(&policyv1alpha1.FederatedResourceQuota{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1alpha1.Cluster{}, r.newClusterHandler()).
		Watches(&workv1alpha1.Work{}, r.newWorkHandler()).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	federated, err := r.readQuota(ctx, r.karmada, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	works, err := r.listWorks(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if federated == nil {
		return loop.Result(r.deleteWorks(ctx, request.NamespacedName, nil, works))
	}
	surplus := withoutAssignment(works, federated)
	err = errors.Join(r.ensureWorks(ctx, federated), r.deleteWorks(ctx, request.NamespacedName, federated, surplus))
	return r.recordOutcome(federated, err)
}

// readQuota returns the quota, or nil if it does not exist. The caller must not change the quota.
func (r *reconciler) readQuota(
	ctx context.Context, from client.Reader, key types.NamespacedName,
) (*policyv1alpha1.FederatedResourceQuota, error) {
	federated := &policyv1alpha1.FederatedResourceQuota{}
	err := from.Get(ctx, key, federated, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading FederatedResourceQuota %s: %w", key, err)
	}
	return federated, nil
}

// listWorks returns the Works of a quota from the cache. The caller must not change the Works.
func (r *reconciler) listWorks(ctx context.Context, key types.NamespacedName) ([]workv1alpha1.Work, error) {
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, loop.WorksByQuota.Matching(key.String()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Works of FederatedResourceQuota %s: %w", key, err)
	}
	return works.Items, nil
}

// ensureWorks creates and updates the Works of all clusters with an assignment. A failure in one
// cluster does not prevent the others.
func (r *reconciler) ensureWorks(ctx context.Context, federated *policyv1alpha1.FederatedResourceQuota) error {
	var failures []error
	for name, hard := range quota.AssignedClusters(federated) {
		cluster := &clusterv1alpha1.Cluster{}
		err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && cluster.DeletionTimestamp != nil {
			continue // the event of a new Cluster causes another pass
		}
		if err == nil {
			err = r.ensureWork(ctx, federated, cluster, hard)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("cluster %s: %w", name, err))
		}
	}
	return errors.Join(failures...)
}

func (r *reconciler) ensureWork(
	ctx context.Context, federated *policyv1alpha1.FederatedResourceQuota, cluster *clusterv1alpha1.Cluster, hard corev1.ResourceList,
) error {
	desired, err := renderWork(federated, cluster, hard)
	if err != nil {
		return err
	}
	stored := &workv1alpha1.Work{}
	err = r.karmada.Get(ctx, client.ObjectKeyFromObject(desired), stored, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		// The execution namespace of a new cluster may not exist yet.
		return loop.StaleIfNotFound(r.karmada.Create(ctx, desired))
	case err != nil:
		return fmt.Errorf("reading Work %s: %w", desired.Name, err)
	case stored.DeletionTimestamp != nil:
		return nil // its deletion event causes another pass
	case work.HasBinding(stored):
		return fmt.Errorf("a policy already propagates a ResourceQuota %s/%s to the cluster: rename it or the FederatedResourceQuota",
			federated.Namespace, federated.Name)
	}
	merged, changed, err := work.Merge(stored, desired)
	if err != nil {
		return fmt.Errorf("merging Work %s: %w", desired.Name, err)
	}
	if changed {
		_, err = patch.Object(ctx, r.karmada, stored, merged)
	}
	return loop.StaleIfNotFound(err)
}

func renderWork(
	federated *policyv1alpha1.FederatedResourceQuota, cluster *clusterv1alpha1.Cluster, hard corev1.ResourceList,
) (*workv1alpha1.Work, error) {
	rendered, err := work.RenderForOwner(work.RenderForOwnerInput{
		Template: quota.NewResourceQuota(federated, hard), Cluster: cluster, PermanentID: uuid.NewString(),
	})
	if err != nil {
		return nil, err
	}
	rendered.Labels[policyv1alpha1.FederatedResourceQuotaNamespaceLabel] = federated.Namespace
	rendered.Labels[policyv1alpha1.FederatedResourceQuotaNameLabel] = federated.Name
	return rendered, nil
}

// deleteWorks deletes Works of a quota after it has read the quota from the API server, because with a
// stale cache it could delete the ResourceQuota of a cluster that has just got an assignment. cached is
// the quota in the cache, or nil if the quota does not exist.
func (r *reconciler) deleteWorks(
	ctx context.Context, key types.NamespacedName, cached *policyv1alpha1.FederatedResourceQuota, works []workv1alpha1.Work,
) error {
	if len(works) == 0 {
		return nil
	}
	current, err := r.readQuota(ctx, r.live, key)
	if err != nil {
		return fmt.Errorf("confirming that %d Works are not needed: %w", len(works), err)
	}
	if (current == nil) != (cached == nil) || current != nil && (current.UID != cached.UID || current.Generation != cached.Generation) {
		return loop.ErrStale
	}
	var failures []error
	for i := range works {
		if each := &works[i]; each.DeletionTimestamp == nil {
			deleted := &workv1alpha1.Work{}
			deleted.Namespace, deleted.Name = each.Namespace, each.Name
			failures = append(failures, client.IgnoreNotFound(r.karmada.Delete(ctx, deleted, client.Preconditions{UID: &each.UID})))
		}
	}
	return errors.Join(failures...)
}

func (r *reconciler) recordOutcome(federated *policyv1alpha1.FederatedResourceQuota, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		r.events.ClearFailure(federated, workv1alpha2.EventReasonSyncWorkFailed)
		r.events.RecordSuccess(federated, workv1alpha2.EventReasonSyncWorkSucceed, "The Works of %d clusters are up to date.",
			len(quota.AssignedClusters(federated)))
	case !loop.IsStale(err):
		r.events.RecordFailure(federated, workv1alpha2.EventReasonSyncWorkFailed, err)
	}
	return loop.Result(err)
}
