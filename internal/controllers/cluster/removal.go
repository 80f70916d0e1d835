package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop/patch"
)

// removalPollInterval is the interval between passes for a cluster that is being removed.
const removalPollInterval = 250 * time.Millisecond

// leftoverPollInterval is the interval between passes for the Works of a deleted cluster.
const leftoverPollInterval = time.Second

// registrationGracePeriod is how long an execution namespace may exist without its Cluster. A
// registration creates the namespace first, and the agent creates the Cluster later.
const registrationGracePeriod = 10 * time.Minute

// removeCluster deletes the objects that the control plane holds for a cluster that is being
// removed.
func (r *reconciler) removeCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(cluster, clusterv1alpha1.ClusterControllerFinalizer) {
		return reconcile.Result{}, r.reportLeaving(ctx, cluster, domain.RemainingObjects{WorksGone: true})
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull && !domain.IsReady(cluster) {
		// The finalizers are removed here, because the agent is lost and no other program removes
		// the finalizers of the Works.
		if _, err := r.releaseWorks(ctx, cluster.Name); err != nil {
			return reconcile.Result{}, err
		}
	}
	targeting, err := r.removeFromBindings(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	isEmpty, err := r.deleteExecutionNamespace(ctx, cluster)
	if err != nil {
		r.events.RecordFailure(cluster, clusterv1alpha1.EventReasonRemoveExecutionSpaceFailed, err)
		return reconcile.Result{}, err
	}
	if !isEmpty || len(targeting) > 0 {
		return reconcile.Result{RequeueAfter: removalPollInterval}, r.reportRemains(ctx, cluster, isEmpty, targeting)
	}
	released := cluster.DeepCopy()
	controllerutil.RemoveFinalizer(released, clusterv1alpha1.ClusterControllerFinalizer)
	_, err = patch.Object(ctx, r.karmada, cluster, released)
	return reconcile.Result{}, ignoreConflict(client.IgnoreNotFound(err))
}

// deleteExecutionNamespace deletes the Works of a cluster and their namespace, and reports whether
// no Work is left. It does not wait for the deletion of the other objects in the namespace, which
// takes several seconds.
//
// Normally the namespace is deleted before the Works, because a namespace that is being deleted
// accepts no new Works. If an agent must release the Works, the namespace is deleted last, because
// it contains the roles of the agent.
func (r *reconciler) deleteExecutionNamespace(ctx context.Context, cluster *clusterv1alpha1.Cluster) (isEmpty bool, err error) {
	namespace := &corev1.Namespace{}
	// The namespace is read from the API server, because a missing object in a cache does not prove
	// that it does not exist.
	err = r.live.Get(ctx, client.ObjectKey{Name: work.ExecutionNamespace(cluster.Name)}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading execution namespace of cluster %q: %w", cluster.Name, err)
	}
	if cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		if err := r.deleteNamespace(ctx, cluster, namespace); err != nil {
			return false, err
		}
	}
	worksLeft, err := r.deleteWorks(ctx, cluster.Name)
	if err != nil || worksLeft {
		return false, err
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull && namespace.DeletionTimestamp == nil {
		// Another pass checks again, because Works could be created until the namespace was
		// deleted.
		return false, r.deleteNamespace(ctx, cluster, namespace)
	}
	return true, nil
}

func (r *reconciler) deleteNamespace(ctx context.Context, cluster *clusterv1alpha1.Cluster, namespace *corev1.Namespace) error {
	if namespace.DeletionTimestamp != nil {
		return nil
	}
	if err := r.karmada.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting execution namespace of cluster %q: %w", cluster.Name, err)
	}
	r.events.RecordDecision(cluster, clusterv1alpha1.EventReasonRemoveExecutionSpaceSucceed,
		"Removed execution namespace %s and all Works in it", namespace.Name)
	return nil
}

// deleteWorks deletes the Works of a cluster and reports whether Works are left.
func (r *reconciler) deleteWorks(ctx context.Context, cluster string) (worksLeft bool, err error) {
	notInDeletion, worksLeft, err := r.findWorks(ctx, cluster)
	if err != nil || !notInDeletion {
		return worksLeft, err
	}
	err = r.karmada.DeleteAllOf(ctx, &workv1alpha1.Work{}, client.InNamespace(work.ExecutionNamespace(cluster)))
	if client.IgnoreNotFound(err) != nil {
		return worksLeft, fmt.Errorf("deleting Works of cluster %q: %w", cluster, err)
	}
	return worksLeft, nil
}

// findWorks reports whether a cluster has Works, and whether some of them are not being deleted.
// If the cache contains no Works, it also reads from the API server.
func (r *reconciler) findWorks(ctx context.Context, cluster string) (notInDeletion, hasWorks bool, err error) {
	inNamespace := client.InNamespace(work.ExecutionNamespace(cluster))
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, inNamespace, client.UnsafeDisableDeepCopy); err != nil {
		return false, false, fmt.Errorf("listing Works of cluster %q: %w", cluster, err)
	}
	if len(works.Items) == 0 {
		works = &workv1alpha1.WorkList{}
		if err := r.live.List(ctx, works, inNamespace, client.Limit(1)); err != nil {
			return false, false, fmt.Errorf("listing Works of cluster %q: %w", cluster, err)
		}
	}
	for i := range works.Items {
		notInDeletion = notInDeletion || works.Items[i].DeletionTimestamp == nil
	}
	return notInDeletion, len(works.Items) > 0, nil
}

// releaseWorks removes the execution finalizer from the Works of a cluster that no execution
// controller serves, and reports whether it found any Work. The objects in the member are kept.
func (r *reconciler) releaseWorks(ctx context.Context, cluster string) (found bool, err error) {
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster))); err != nil {
		return false, fmt.Errorf("listing Works of cluster %q: %w", cluster, err)
	}
	for i := range works.Items {
		released := works.Items[i].DeepCopy()
		controllerutil.RemoveFinalizer(released, workv1alpha1.ExecutionFinalizer)
		if _, err := patch.Object(ctx, r.karmada, &works.Items[i], released); client.IgnoreNotFound(err) != nil {
			return true, err
		}
	}
	return len(works.Items) > 0, nil
}

// cleanUpDeletedCluster removes the objects that are left in the execution namespace of a deleted
// cluster, for example after a forced removal. It repeats until no Work is left, because an
// execution controller whose cache still contains the Cluster may add its finalizer again. It does
// not touch a namespace that this controller did not create, unless the namespace is being deleted.
// It also keeps a recently created namespace, because that may belong to a cluster that is being
// registered.
func (r *reconciler) cleanUpDeletedCluster(ctx context.Context, cluster string) (reconcile.Result, error) {
	namespace := newUnstructuredNamespace(work.ExecutionNamespace(cluster))
	if err := r.karmada.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	inDeletion := namespace.GetDeletionTimestamp() != nil
	if !inDeletion && namespace.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] != clusterv1alpha1.KarmadaSystemLabelValue {
		return reconcile.Result{}, nil
	}
	err := r.live.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1alpha1.Cluster{})
	if err == nil {
		return reconcile.Result{}, nil
	}
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("verifying that cluster %q is deleted: %w", cluster, err)
	}
	if remaining := registrationGracePeriod - r.now().Sub(namespace.GetCreationTimestamp().Time); !inDeletion && remaining > 0 {
		return reconcile.Result{RequeueAfter: remaining}, nil
	}
	if !inDeletion {
		// The pass does not wait for the deletion, because the update event of the namespace starts
		// the next pass.
		uid := namespace.GetUID()
		err := r.karmada.Delete(ctx, newUnstructuredNamespace(namespace.GetName()), client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(ignoreConflict(err)) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting the execution namespace of deleted cluster %q: %w", cluster, err)
		}
	}
	found, err := r.releaseWorks(ctx, cluster)
	if found && ignoreConflict(err) == nil {
		return reconcile.Result{RequeueAfter: leftoverPollInterval}, nil
	}
	return reconcile.Result{}, err
}
