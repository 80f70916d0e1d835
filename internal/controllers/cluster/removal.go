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
	"karmada.io/karmada/internal/access/patch"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/work"
)

// removalPoll is how often a cluster that leaves is looked at again.
const removalPoll = 250 * time.Millisecond

// restPoll is how often the Works of a cluster that is gone are looked at again.
const restPoll = time.Second

// registrationTime is how long an execution namespace may exist before its Cluster:
// a registration makes the namespace first, and the agent makes the Cluster.
const registrationTime = 10 * time.Minute

// remove takes down what the control plane holds for a cluster that leaves.
func (r *reconciler) remove(ctx context.Context, cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(cluster, clusterv1alpha1.ClusterControllerFinalizer) {
		return reconcile.Result{}, r.reportLeaving(ctx, cluster, domain.Remains{WorksGone: true})
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull && !domain.Ready(cluster) {
		// Its agent is lost, and no other program removes their finalizer.
		if _, err := r.letWorksGo(ctx, cluster.Name); err != nil {
			return reconcile.Result{}, err
		}
	}
	targeting, err := r.takeOut(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	empty, err := r.clearExecutionSpace(ctx, cluster)
	if err != nil {
		r.events.Failed(cluster, clusterv1alpha1.EventReasonRemoveExecutionSpaceFailed, err)
		return reconcile.Result{}, err
	}
	if !empty || len(targeting) > 0 {
		return reconcile.Result{RequeueAfter: removalPoll}, r.tellRemains(ctx, cluster, empty, targeting)
	}
	released := cluster.DeepCopy()
	controllerutil.RemoveFinalizer(released, clusterv1alpha1.ClusterControllerFinalizer)
	_, err = patch.Object(ctx, r.karmada, cluster, released)
	return reconcile.Result{}, quiet(client.IgnoreNotFound(err))
}

// clearExecutionSpace deletes the Works of a cluster and their namespace, and tells
// when none is left. What else the namespace holds goes with it in its own time:
// that takes the controller of namespaces several seconds, and no cluster needs to
// wait for them.
//
// A namespace that goes takes no new Works, so it goes first, but not where an agent
// lets go of the Works: the roles that allow it to do so are in the namespace.
func (r *reconciler) clearExecutionSpace(ctx context.Context, cluster *clusterv1alpha1.Cluster) (empty bool, err error) {
	namespace := &corev1.Namespace{}
	// Asked live: that a cache does not show a namespace does not mean it is gone.
	err = r.live.Get(ctx, client.ObjectKey{Name: work.ExecutionNamespace(cluster.Name)}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading execution namespace of cluster %q: %w", cluster.Name, err)
	}
	if cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		if err := r.deleteExecutionSpace(ctx, cluster, namespace); err != nil {
			return false, err
		}
	}
	left, err := r.deleteWorks(ctx, cluster.Name)
	if err != nil || left {
		return false, err
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull && namespace.DeletionTimestamp == nil {
		// Looked at again: until now there could be new ones.
		return false, r.deleteExecutionSpace(ctx, cluster, namespace)
	}
	return true, nil
}

func (r *reconciler) deleteExecutionSpace(ctx context.Context, cluster *clusterv1alpha1.Cluster, namespace *corev1.Namespace) error {
	if namespace.DeletionTimestamp != nil {
		return nil
	}
	if err := r.karmada.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting execution namespace of cluster %q: %w", cluster.Name, err)
	}
	r.events.Decided(cluster, clusterv1alpha1.EventReasonRemoveExecutionSpaceSucceed,
		"Removed execution namespace %s and all Works in it", namespace.Name)
	return nil
}

// deleteWorks deletes the Works of a cluster and tells whether some are left.
func (r *reconciler) deleteWorks(ctx context.Context, cluster string) (left bool, err error) {
	staying, left, err := r.worksOf(ctx, cluster)
	if err != nil || !staying {
		return left, err
	}
	err = r.karmada.DeleteAllOf(ctx, &workv1alpha1.Work{}, client.InNamespace(work.ExecutionNamespace(cluster)))
	if client.IgnoreNotFound(err) != nil {
		return left, fmt.Errorf("deleting Works of cluster %q: %w", cluster, err)
	}
	return left, nil
}

// worksOf tells whether a cluster has Works, and whether some of them are not being
// deleted. Nobody believes a cache that there are none.
func (r *reconciler) worksOf(ctx context.Context, cluster string) (staying, left bool, err error) {
	inSpace := client.InNamespace(work.ExecutionNamespace(cluster))
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, inSpace, client.UnsafeDisableDeepCopy); err != nil {
		return false, false, fmt.Errorf("listing Works of cluster %q: %w", cluster, err)
	}
	if len(works.Items) == 0 {
		works = &workv1alpha1.WorkList{}
		if err := r.live.List(ctx, works, inSpace, client.Limit(1)); err != nil {
			return false, false, fmt.Errorf("listing Works of cluster %q: %w", cluster, err)
		}
	}
	for i := range works.Items {
		staying = staying || works.Items[i].DeletionTimestamp == nil
	}
	return staying, len(works.Items) > 0, nil
}

// letWorksGo removes the finalizer of the executor from the Works of a cluster that no
// executor serves, and reports whether it found any Work. The member's objects stay.
func (r *reconciler) letWorksGo(ctx context.Context, cluster string) (found bool, err error) {
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

// letRestGo removes what is left in the execution namespace of a cluster that is gone
// for good, such as one that was removed by force. It looks again until no Work is left:
// an executor that has not seen the end of the cluster may put its finalizer back. A
// namespace that this controller did not make is left alone unless it is being deleted,
// and a young one may be that of a cluster that registers itself.
func (r *reconciler) letRestGo(ctx context.Context, cluster string) (reconcile.Result, error) {
	namespace := executionSpace(work.ExecutionNamespace(cluster))
	if err := r.karmada.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	going := namespace.GetDeletionTimestamp() != nil
	if !going && namespace.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] != clusterv1alpha1.KarmadaSystemLabelValue {
		return reconcile.Result{}, nil
	}
	err := r.live.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1alpha1.Cluster{})
	if err == nil {
		return reconcile.Result{}, nil
	}
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("making sure that cluster %q is gone: %w", cluster, err)
	}
	if young := registrationTime - r.now().Sub(namespace.GetCreationTimestamp().Time); !going && young > 0 {
		return reconcile.Result{RequeueAfter: young}, nil
	}
	if !going {
		// The change of the namespace leads back here.
		uid := namespace.GetUID()
		err := r.karmada.Delete(ctx, executionSpace(namespace.GetName()), client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(quiet(err)) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting the execution namespace of cluster %q, which is gone: %w", cluster, err)
		}
	}
	found, err := r.letWorksGo(ctx, cluster)
	if found && quiet(err) == nil {
		return reconcile.Result{RequeueAfter: restPoll}, nil
	}
	return reconcile.Result{}, err
}
