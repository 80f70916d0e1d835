// Package workdeletion permits the agents of pull mode clusters to delete the objects of Works that
// are being deleted.
//
// An agent can read the Works of its cluster, but not the objects that explain the deletion of a
// Work. The control plane therefore decides, with the same facts and limits as for push mode
// clusters. It writes its permission to an annotation of the Work, or removes the finalizer of a Work
// whose objects are kept.
//
// Invariants: a permission names the UID of the Work and the epoch of the control plane, so that it
// is valid neither for another Work of the same name nor after the restore of a backup. The
// permission is removed if the Work is desired again. This controller never writes a Work that is
// not being deleted.
package workdeletion

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/deletionguard"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// Name is the name of the controller in logs and events.
const Name = "work-deletion-controller"

// Options configure the controller.
type Options struct {
	Workers int
	Backoff loop.Backoff
	Guard   *deletionguard.Guard
}

type reconciler struct {
	karmada client.Client
	guard   *deletionguard.Guard
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{karmada: mgr.GetClient(), guard: o.Guard}
	err := builder.ControllerManagedBy(mgr).Named(Name).
		For(&workv1alpha1.Work{}, builder.WithPredicates(onlyDeletedWorks())).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsForDeletedWorks),
			builder.WithPredicates(onlyDecisiveChanges(r.guard))).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// isInDeletion reports whether an object is being deleted and still has the execution finalizer.
func isInDeletion(object client.Object) bool {
	return object.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(object, workv1alpha1.ExecutionFinalizer)
}

// onlyDeletedWorks returns a predicate that selects Works that are being deleted and still have
// their finalizer, and the deletion events of Works.
func onlyDeletedWorks() predicate.Predicate {
	passes := predicate.NewPredicateFuncs(isInDeletion)
	return predicate.Funcs{
		CreateFunc: passes.Create, UpdateFunc: passes.Update, GenericFunc: passes.Generic,
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

// onlyDecisiveChanges returns a predicate that selects changes of Clusters that may change a
// decision: the cluster becomes ready, starts to be removed, or a user confirms deletions.
func onlyDecisiveChanges(deletions *deletionguard.Guard) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if !ok || !ok2 || !isDecisive(before, after) {
				return false
			}
			deletions.AllowHeldEventAgain(after.Name)
			return true
		},
	}
}

func isDecisive(before, after *clusterv1alpha1.Cluster) bool {
	confirmation := workv1alpha1.ConfirmDeletionsAnnotation
	return after.Spec.SyncMode == clusterv1alpha1.Pull &&
		(!isReady(before) && isReady(after) || before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
			before.Annotations[confirmation] != after.Annotations[confirmation])
}

func isReady(cluster *clusterv1alpha1.Cluster) bool {
	return conditions.HasStatus(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue)
}

// requestsForDeletedWorks returns requests for those Works of a cluster that are being deleted.
func (r *reconciler) requestsForDeletedWorks(ctx context.Context, cluster client.Object) []reconcile.Request {
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.GetName())),
		client.UnsafeDisableDeepCopy); err != nil {
		// The error is ignored, because a read from a cache fails only when the process ends.
		return nil
	}
	var requests []reconcile.Request
	for i := range works.Items {
		if isInDeletion(&works.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&works.Items[i])})
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &workv1alpha1.Work{}
	if err := r.karmada.Get(ctx, request.NamespacedName, stored); err != nil {
		if apierrors.IsNotFound(err) {
			r.guard.StopTrackingWork(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name, ok := work.ClusterOf(request.Namespace)
	if !ok || !isInDeletion(stored) {
		return reconcile.Result{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		return reconcile.Result{}, nil
	}
	decision, err := r.guard.Process(ctx, cluster, stored, isReady(cluster))
	return reconcile.Result{RequeueAfter: decision.RecheckAfter}, err
}
