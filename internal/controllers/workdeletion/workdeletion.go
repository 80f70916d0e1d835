// Package workdeletion answers "may the agent of a pull mode cluster delete the objects
// of a Work that is being deleted?".
//
// An agent sees the Works of its cluster and nothing that explains their deletion. The
// control plane decides with the same facts and limits as for push mode clusters. It
// writes the answer on the Work, or releases a Work whose objects stay.
//
// Invariants: a permission names the UID of the Work and the epoch of the control plane,
// so that it holds for no other Work of the name and not after the restore of a backup.
// It is withdrawn if the Work is wanted again. A Work that is not being
// deleted is never written.
package workdeletion

import (
	"context"
	"fmt"
	"time"

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
	"karmada.io/karmada/internal/access/judge"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// Name is the name of the controller in logs and events.
const Name = "work-deletion-controller"

const (
	// review is how often a Work is decided about again while it waits for its agent.
	review = 30 * time.Second
	// firstReview is how soon a held deletion is decided about again at the earliest.
	firstReview = 200 * time.Millisecond
)

// Options are what operators may tune.
type Options struct {
	Workers int
	Backoff queues.Backoff
	Judge   *judge.Judge
}

type reconciler struct {
	karmada client.Client
	judge   *judge.Judge
	now     func() time.Time
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{karmada: mgr.GetClient(), judge: o.Judge, now: time.Now}
	watch := manager.RunnableFunc(o.Judge.Watch)
	if err := mgr.Add(watch); err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	err := builder.ControllerManagedBy(mgr).Named(Name).
		For(&workv1alpha1.Work{}, builder.WithPredicates(onDeletion())).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.waiting), builder.WithPredicates(onDecisiveChange(r.judge))).
		WithOptions(queues.Options[reconcile.Request](mgr, o.Workers, o.Backoff)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// waits reports whether an object is a Work that waits for the end of its deletion.
func waits(object client.Object) bool {
	return object.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(object, workv1alpha1.ExecutionFinalizer)
}

// onDeletion passes Works that wait for the end of their deletion, and the end of Works.
func onDeletion() predicate.Predicate {
	passes := predicate.NewPredicateFuncs(waits)
	return predicate.Funcs{
		CreateFunc: passes.Create, UpdateFunc: passes.Update, GenericFunc: passes.Generic,
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

// onDecisiveChange passes changes of Clusters that may change a verdict: the cluster is
// ready again, leaves, or a user confirmed deletions.
func onDecisiveChange(judge *judge.Judge) predicate.Predicate {
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
			judge.Reconsider(after.Name)
			return true
		},
	}
}

func isDecisive(before, after *clusterv1alpha1.Cluster) bool {
	confirmation := workv1alpha1.ConfirmDeletionsAnnotation
	return after.Spec.SyncMode == clusterv1alpha1.Pull &&
		(!ready(before) && ready(after) || before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
			before.Annotations[confirmation] != after.Annotations[confirmation])
}

func ready(cluster *clusterv1alpha1.Cluster) bool {
	return conditions.Is(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue)
}

// waiting returns the Works of a cluster that wait for the end of their deletion.
func (r *reconciler) waiting(ctx context.Context, cluster client.Object) []reconcile.Request {
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.GetName())), client.UnsafeDisableDeepCopy); err != nil {
		// The cache ends, and with it this process.
		return nil
	}
	var requests []reconcile.Request
	for i := range works.Items {
		if waits(&works.Items[i]) {
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
			r.judge.Forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name, ok := work.ClusterOf(request.Namespace)
	if !ok || !waits(stored) {
		return reconcile.Result{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		return reconcile.Result{}, nil
	}
	return r.decide(ctx, cluster, stored)
}

// decide writes the verdict on a Work.
func (r *reconciler) decide(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (reconcile.Result, error) {
	reachable := ready(cluster)
	ruling, err := r.judge.Decide(ctx, cluster, stored, reachable)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := stored.DeepCopy()
	preserves := stored.Spec.PreserveResourcesOnDeletion != nil && *stored.Spec.PreserveResourcesOnDeletion
	if ruling.After > 0 && !preserves {
		return reconcile.Result{RequeueAfter: ruling.After}, nil
	}
	again := review
	switch {
	case ruling.Verdict == guard.HandOver:
		controllerutil.RemoveFinalizer(wanted, workv1alpha1.ExecutionFinalizer)
		delete(wanted.Annotations, workv1alpha1.DeletionAllowedAnnotation)
		again = 0
	case ruling.Verdict == guard.Delete && (reachable || ruling.Facts.ClusterLeaves), ruling.Verdict == guard.Hold && preserves:
		if wanted.Annotations == nil {
			wanted.Annotations = map[string]string{}
		}
		wanted.Annotations[workv1alpha1.DeletionAllowedAnnotation] = ruling.Permission(stored)
	case ruling.Verdict == guard.Hold:
		delete(wanted.Annotations, workv1alpha1.DeletionAllowedAnnotation)
		again = r.nextReview(stored)
		// The error says that the deletion is tried again, which again does.
		_ = r.judge.Hold(cluster, stored, ruling)
	default:
		// The verdict may be another one when the cluster is back.
		return reconcile.Result{RequeueAfter: review}, nil
	}
	return r.write(ctx, cluster, stored, wanted, ruling, again)
}

// write stores the verdict. A patch carries the version of the Work that was decided
// about, and with it the UID.
func (r *reconciler) write(
	ctx context.Context, cluster *clusterv1alpha1.Cluster, stored, wanted *workv1alpha1.Work, ruling judge.Ruling, again time.Duration,
) (reconcile.Result, error) {
	_, err := patch.Object(ctx, r.karmada, stored, wanted)
	switch {
	case apierrors.IsConflict(err):
		// The newer Work is on its way here, unless only the agent's status is newer.
		return reconcile.Result{RequeueAfter: firstReview}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("writing the verdict on the deletion of Work %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	if ruling.Verdict != guard.Hold {
		r.judge.Settle(cluster.Name, stored, ruling)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// nextReview is when to decide again about a held deletion: after as long as it is held,
// within bounds.
func (r *reconciler) nextReview(stored *workv1alpha1.Work) time.Duration {
	return min(max(r.now().Sub(stored.DeletionTimestamp.Time), firstReview), review)
}
