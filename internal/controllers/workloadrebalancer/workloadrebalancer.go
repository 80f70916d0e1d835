// Package workloadrebalancer triggers a fresh scheduling of the workloads that WorkloadRebalancers list.
//
// Invariants:
//
//   - A pass triggers a bounded batch of workloads and writes their results together. The rate of all
//     rebalancers together is limited, so that thousands of workloads delay no other changes.
//   - If the process stops at any time, the next pass writes the same trigger time to the bindings. The API
//     server then changes nothing, so no workload is scheduled twice.
//   - A workload has no binding only if the API server confirms it.
package workloadrebalancer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	"karmada.io/karmada/internal/domain/rebalance"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in flags, logs and events.
const Name = "workload-rebalancer"

// Options configure the controller.
type Options struct {
	// TriggersPerSecond limits the workloads that all rebalancers together process in a second.
	TriggersPerSecond int
	// BatchSize is the maximum number of workloads whose results are written together. It must not exceed
	// TriggersPerSecond.
	BatchSize int
	// ParallelTriggers is the number of bindings of a batch that are written at the same time.
	ParallelTriggers int
	// Backoff is the backoff for rebalancers that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{TriggersPerSecond: 200, BatchSize: 100, ParallelTriggers: 25, Backoff: loop.DefaultBackoff()}
}

type reconciler struct {
	options Options
	// karmada reads bindings from a cache. live reads from the API server.
	karmada client.Client
	live    client.Reader
	events  *loop.Events
	now     func() time.Time
	limiter *rate.Limiter

	mu sync.Mutex
	// lastAttempted holds the last workload of each rebalancer's previous batch. If it is lost, failed
	// workloads are attempted once more.
	lastAttempted map[types.NamespacedName]rebalance.Workload
}

func newReconciler(karmada client.Client, live client.Reader, events *loop.Events, o Options) *reconciler {
	return &reconciler{
		options: o, karmada: karmada, live: live, events: events, now: time.Now,
		limiter:       rate.NewLimiter(rate.Limit(o.TriggersPerSecond), o.BatchSize),
		lastAttempted: map[types.NamespacedName]rebalance.Workload{},
	}
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, o Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), loop.EventsFor(mgr, Name, loop.EventModeChanges), o)
	return builder.ControllerManagedBy(mgr).Named(Name).
		For(&appsv1alpha1.WorkloadRebalancer{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(loop.ControllerOptions[reconcile.Request](mgr, 1, o.Backoff)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. It reads the rebalancer from the API server, because the cache
// does not contain managed fields.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &appsv1alpha1.WorkloadRebalancer{}
	err := r.live.Get(ctx, request.NamespacedName, stored)
	if err != nil || stored.DeletionTimestamp != nil {
		r.setLastAttempted(request.NamespacedName, rebalance.Workload{})
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	observed := rebalance.Observe(stored)
	indexes, isLast := r.nextBatch(request.NamespacedName, observed)
	if wait := r.reserve(len(indexes)); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	b := r.triggerBatch(ctx, stored, observed, indexes)
	stored, err = r.writeResults(ctx, stored, b)
	if err != nil {
		return loop.Result(client.IgnoreNotFound(err))
	}
	if !isLast {
		r.setLastAttempted(request.NamespacedName, observed[indexes[len(indexes)-1]].Workload)
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	r.setLastAttempted(request.NamespacedName, rebalance.Workload{})
	return r.finish(ctx, stored, b)
}

// finish retries the workloads that are still pending, or deletes the rebalancer when its time has come.
func (r *reconciler) finish(ctx context.Context, stored *appsv1alpha1.WorkloadRebalancer, b *batch) (reconcile.Result, error) {
	if err := b.firstError(); err != nil {
		r.events.RecordFailure(stored, appsv1alpha1.EventReasonRebalanceFailed, err)
		return reconcile.Result{}, err
	}
	if rebalance.IsPending(stored.Status.ObservedWorkloads) {
		return loop.StaleResult(), nil
	}
	r.events.ClearFailure(stored, appsv1alpha1.EventReasonRebalanceFailed)
	at, isSet := rebalance.DeletionTime(stored)
	if !isSet {
		return reconcile.Result{}, nil
	}
	if wait := at.Sub(r.now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	err := r.karmada.Delete(ctx, stored, client.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return loop.Result(fmt.Errorf("deleting the finished WorkloadRebalancer %s: %w", stored.Name, err))
	}
	return reconcile.Result{}, nil
}

// writeResults stores the results of a batch, and returns the stored rebalancer. After a conflict it adds the
// results to the changed rebalancer, because the workloads would otherwise be triggered again with the time
// of the change.
func (r *reconciler) writeResults(
	ctx context.Context, stored *appsv1alpha1.WorkloadRebalancer, b *batch,
) (*appsv1alpha1.WorkloadRebalancer, error) {
	var (
		current = stored
		written *appsv1alpha1.WorkloadRebalancer
		changed bool
	)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		written = current.DeepCopy()
		written.Status = rebalance.NewStatus(current, b.mergeInto(rebalance.Observe(current)), r.now())
		changed, err = patch.Status(ctx, r.karmada, current, written)
		if apierrors.IsConflict(err) {
			current = &appsv1alpha1.WorkloadRebalancer{}
			if readErr := r.live.Get(ctx, client.ObjectKeyFromObject(stored), current); readErr != nil {
				return readErr
			}
			if current.UID != stored.UID {
				return loop.ErrStale
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if changed {
		r.recordEvents(written, b)
	}
	recorded := written.DeepCopy()
	rebalance.RecordRemoved(recorded)
	_, err = patch.Object(ctx, r.karmada, written, recorded)
	return recorded, err
}

// recordEvents records the problems of a batch, and the end of the rebalancing.
func (r *reconciler) recordEvents(written *appsv1alpha1.WorkloadRebalancer, b *batch) {
	if len(b.problems) > 0 {
		r.events.RecordFailure(written, appsv1alpha1.EventReasonRebalanceProblem, errors.New(rebalance.DescribeProblems(b.problems)))
	}
	if len(b.results) > 0 && written.Status.FinishTime != nil {
		r.events.RecordDecision(written, appsv1alpha1.EventReasonRebalanceTriggered, "%s",
			rebalance.DescribeResults(written.Status.ObservedWorkloads))
	}
}
