// Package workdeletion decides whether the agent of a pull mode cluster may delete the objects of
// a Work that is being deleted.
//
// An agent can read the Works of its cluster, but not the objects that explain the deletion of a
// Work. The control plane therefore decides, with the same facts and limits as for push mode
// clusters. It writes the verdict to an annotation of the Work, or removes the finalizer of a Work
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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in logs and events.
const Name = "work-deletion-controller"

const (
	// recheckInterval is the interval at which the decision on a Work is repeated while the Work
	// waits for its agent.
	recheckInterval = 30 * time.Second
	// lostRightsDelay is how long an agent may take for a permitted deletion after its execution
	// namespace is deleted. The permissions of the agent are in that namespace and are deleted together
	// with it. The agent can then never end the deletion of the Work, so after this delay the
	// controller ends the deletion and the objects stay in the member.
	lostRightsDelay = time.Minute
	// minRecheckDelay is the shortest delay until the decision about a held deletion is repeated.
	minRecheckDelay = 200 * time.Millisecond
)

// Options configure the controller.
type Options struct {
	Workers int
	Backoff loop.Backoff
	Judge   *deletionguard.Guard
}

type reconciler struct {
	karmada client.Client
	judge   *deletionguard.Guard
	events  *loop.Events
	now     func() time.Time
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(), judge: o.Judge,
		events: loop.EventsFor(mgr, Name, loop.EventModeChanges), now: time.Now,
	}
	err := builder.ControllerManagedBy(mgr).Named(Name).
		For(&workv1alpha1.Work{}, builder.WithPredicates(onlyDeletedWorks())).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsForDeletedWorks), builder.WithPredicates(onlyDecisiveChanges(r.judge))).
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
// verdict: the cluster becomes ready, starts to be removed, or a user confirms deletions.
func onlyDecisiveChanges(judge *deletionguard.Guard) predicate.Predicate {
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
			judge.AllowHeldEventAgain(after.Name)
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
	if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster.GetName())), client.UnsafeDisableDeepCopy); err != nil {
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
			r.judge.StopTrackingWork(request.NamespacedName)
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
	return r.decide(ctx, cluster, stored)
}

// decide computes the verdict on a Work and writes it.
func (r *reconciler) decide(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (reconcile.Result, error) {
	reachable := isReady(cluster)
	ruling, err := r.judge.Decide(ctx, cluster, stored, reachable)
	if err != nil {
		return reconcile.Result{}, err
	}
	desired := stored.DeepCopy()
	preserves := stored.Spec.PreserveResourcesOnDeletion != nil && *stored.Spec.PreserveResourcesOnDeletion
	if ruling.RetryAfter > 0 && !preserves {
		return reconcile.Result{RequeueAfter: ruling.RetryAfter}, nil
	}
	hasLostRights, err := r.hasLostRights(ctx, cluster, stored, ruling)
	if err != nil {
		return reconcile.Result{}, err
	}
	if hasLostRights {
		r.events.RecordFailure(cluster, workv1alpha1.EventReasonDeletionAbandoned, fmt.Errorf(
			"the objects of Work %s/%s stay in the cluster: the execution namespace was deleted, and with it the rights of the agent", stored.Namespace, stored.Name))
		ruling.Verdict = guard.HandOver
	}
	requeueAfter := recheckInterval
	switch {
	case ruling.Verdict == guard.HandOver:
		controllerutil.RemoveFinalizer(desired, workv1alpha1.ExecutionFinalizer)
		delete(desired.Annotations, workv1alpha1.DeletionAllowedAnnotation)
		requeueAfter = 0
	case ruling.Verdict == guard.Delete && (reachable || ruling.Evidence.ClusterUnregistering), ruling.Verdict == guard.Hold && preserves && ruling.Reason != guard.ReasonSuspended:
		if desired.Annotations == nil {
			desired.Annotations = map[string]string{}
		}
		desired.Annotations[workv1alpha1.DeletionAllowedAnnotation] = ruling.Permission(stored)
	case ruling.Verdict == guard.Hold:
		delete(desired.Annotations, workv1alpha1.DeletionAllowedAnnotation)
		requeueAfter = r.recheckDelay(stored)
		// The returned error is dropped, because requeueAfter already requests the retry.
		_ = r.judge.ReportHeld(cluster, stored, ruling)
	default:
		// The decision is repeated later, because the verdict may change when the cluster is ready
		// again.
		return reconcile.Result{RequeueAfter: recheckInterval}, nil
	}
	return r.writeVerdict(ctx, stored, desired, ruling, requeueAfter)
}

// hasLostRights reports whether the agent cannot execute a permitted deletion any more, because
// the execution namespace is being deleted. A cluster in deletion is left to the cluster
// controller.
func (r *reconciler) hasLostRights(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work, ruling deletionguard.Decision) (bool, error) {
	isPermitted := ruling.Verdict == guard.Delete && stored.Annotations[workv1alpha1.DeletionAllowedAnnotation] == ruling.Permission(stored)
	if !isPermitted || cluster.DeletionTimestamp != nil || r.now().Sub(stored.DeletionTimestamp.Time) < lostRightsDelay {
		return false, nil
	}
	// The Namespace is read as an unstructured object, because the cache already contains
	// Namespaces in this form for other controllers.
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: stored.Namespace}, namespace); err != nil {
		return false, fmt.Errorf("reading execution namespace %s: %w", stored.Namespace, err)
	}
	deletedAt := namespace.GetDeletionTimestamp()
	return deletedAt != nil && r.now().Sub(deletedAt.Time) >= lostRightsDelay, nil
}

// writeVerdict stores the verdict. The patch has the resourceVersion and the UID of the Work as
// preconditions.
func (r *reconciler) writeVerdict(
	ctx context.Context, stored, desired *workv1alpha1.Work, ruling deletionguard.Decision, requeueAfter time.Duration,
) (reconcile.Result, error) {
	_, err := patch.Object(ctx, r.karmada, stored, desired)
	switch {
	case apierrors.IsConflict(err):
		// The Work is queued again after a delay, because the watch does not queue it if only its
		// status changed.
		return reconcile.Result{RequeueAfter: minRecheckDelay}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("writing the verdict on the deletion of Work %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	if ruling.Verdict != guard.Hold {
		r.judge.MarkSettled(stored)
	}
	return reconcile.Result{RequeueAfter: requeueAfter}, nil
}

// recheckDelay returns the delay before the decision on a held deletion is repeated. The delay is
// the time for which the deletion has been held so far, within limits.
func (r *reconciler) recheckDelay(stored *workv1alpha1.Work) time.Duration {
	return min(max(r.now().Sub(stored.DeletionTimestamp.Time), minRecheckDelay), recheckInterval)
}
