// Package scheduler assigns clusters to bindings. Its reconcile loop enqueues changed bindings by
// priority, calls package placement with a snapshot of all clusters, and writes the result.
//
// Invariants:
//   - A pass writes at most twice: first the targets together with the placement for which they were
//     selected, and then the status. It writes nothing if nothing has changed. The status of a success
//     is normally written by the status controller, together with the statuses of the clusters.
//   - A write of targets requires the resourceVersion that was read, so it never reverts another
//     client's change.
//   - No binding is processed before all clusters are listed, because a cluster that is not in the
//     cache looks like a deleted one.
//   - After a change of a cluster, only the bindings that an index finds by the cluster's name, labels
//     and fields are considered.
package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
)

// Options configures the scheduler.
type Options struct {
	// Name is the value of spec.schedulerName in the bindings that this scheduler handles. It is also
	// the source of its events.
	Name string
	// Workers is the number of bindings that are scheduled concurrently.
	Workers int
	// Plugins selects filter and score plugins. An empty list selects all plugins.
	Plugins  placement.Plugins
	Features placement.Features
	// PriorityScheduling orders the queue by the bindings' schedule priority, and retries bindings
	// that lack capacity after CapacityDelay. If it is false, bindings are scheduled in order of
	// arrival, and all failures are retried with the same backoff.
	PriorityScheduling bool
	// OvercommitProtection subtracts newly scheduled workloads from the clusters' capacity, until the
	// clusters report these workloads as healthy.
	OvercommitProtection bool
	// BaseDelay and MaxDelay limit the exponential backoff after a failure.
	BaseDelay, MaxDelay time.Duration
	// CapacityDelay is the retry delay of a binding that lacks capacity. The binding is retried
	// earlier if a cluster reports more capacity.
	CapacityDelay time.Duration
	// ReportTimeout is how long this scheduler waits for another scheduler that a binding names. If
	// the other scheduler has not reported by then, this scheduler sets the condition Scheduled of the
	// binding to False with the reason SchedulerNotReporting.
	ReportTimeout time.Duration
	// Placer lets the detector of this process create bindings together with their clusters. Nil
	// means that all bindings are scheduled after their creation.
	Placer *loop.BindingPlacer
}

// DefaultOptions returns the options of the default scheduler, which uses all plugins.
func DefaultOptions() Options {
	return Options{
		Name: policyv1alpha1.DefaultSchedulerName, Workers: 12, Plugins: placement.Plugins{"*"}, PriorityScheduling: true,
		BaseDelay: time.Second, MaxDelay: 10 * time.Second, CapacityDelay: 5 * time.Minute,
		ReportTimeout: 10 * time.Second,
	}
}

type scheduler struct {
	options    Options
	karmada    client.Client
	liveReader client.Reader
	cache      cache.Cache
	estimators []estimators.Row
	events     *loop.Events
	// deferredEvents records the scheduler's events, and defers them under load.
	deferredEvents *eventBacklog
	clusters       *clusterSnapshots
	backoff        *failureBackoff
	// ownWrites holds the bindings that the scheduler has written, until the cache shows them. Without
	// it, the scheduler would process the old state again and get a conflict.
	ownWrites        *loop.Writes[request]
	reportedFailures *reportedFailures
	unreported       *unreportedTracker
	// placed holds a placedBinding for each binding that is not created yet.
	placed *lru.Cache
	// deferredStatuses holds the successes that are not in the status yet.
	deferredStatuses *deferredStatuses
	assumptions      *assumptions
	metrics          metrics
	now              func() time.Time
	// reservedTargets holds bindings of workload affinity groups with their new targets, by request. An
	// entry exists from the reservation of the targets until ownWrites holds the written binding.
	reservedTargets sync.Map
	// workloadGroupMu serializes the reservations in reservedTargets.
	workloadGroupMu sync.Mutex
}

// Add registers the scheduler with mgr. If several estimators in table estimate the same cluster, the
// lowest estimate counts. Without estimators, every workload fits.
func Add(mgr manager.Manager, table []estimators.Row, o Options) error {
	s := &scheduler{
		options: o, karmada: mgr.GetClient(), liveReader: mgr.GetAPIReader(), cache: mgr.GetCache(), estimators: table,
		events:   loop.EventsFor(mgr, o.Name, loop.EventModeChanges),
		clusters: newClusterSnapshots(), backoff: newFailureBackoff(o), ownWrites: loop.NewWrites[request](nil),
		reportedFailures: newReportedFailures(), unreported: newUnreportedTracker(), placed: lru.New(maxPlacedBindings),
		assumptions: newAssumptions(o.OvercommitProtection), now: time.Now,
	}
	measured, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	s.metrics = measured
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), indexes(o.Features)...); err != nil {
		return err
	}
	logger := mgr.GetLogger().WithValues("controller", "scheduler", "scheduler", o.Name)
	options := loop.ControllerOptions[request](mgr, o.Workers, loop.Backoff{Base: o.BaseDelay, Max: o.MaxDelay})
	options.Reconciler, options.NewQueue = s, loop.NewPriorityQueue[request]
	options.LogConstructor = func(r *request) logr.Logger {
		if r == nil {
			return logger
		}
		return logger.WithValues("binding", r.String())
	}
	c, err := controller.NewTyped("scheduler", mgr, options)
	if err != nil {
		return fmt.Errorf("building the scheduler: %w", err)
	}
	return c.Watch(&source{scheduler: s})
}

// pass holds the state of one reconcile of one binding.
type pass struct {
	request request
	// stored is the newest observed version of the binding, including this pass's writes.
	stored   binding.Object
	snapshot *snapshot
	decision placement.Decision
	started  time.Time
}

// Reconcile implements reconcile.TypedReconciler. It returns an error only if the binding cannot be
// read. All other failures are reported in the binding's status.
func (s *scheduler) Reconcile(ctx context.Context, r request) (reconcile.Result, error) {
	stored, err := s.readBinding(ctx, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	if stored == nil || !s.handles(stored) {
		s.stopTracking(r)
		return s.recordMissingReport(ctx, r, stored)
	}
	p := pass{request: r, stored: stored, snapshot: s.clusters.snapshot(), started: s.now()}
	p.decision, err = decide(stored, p.snapshot.find, s.options.Features)
	switch {
	case err != nil:
		desired, changed := s.removeTerminatingTargets(ctx, p)
		return s.recordOutcome(ctx, s.recordWrite(p, desired, changed), failedOutcome(stored, err)), nil
	case p.decision.Action == placement.ActionSchedule:
		return s.schedule(ctx, p), nil
	case p.decision.Action == placement.ActionObserve:
		return s.recordOutcome(ctx, p, unchangedOutcome(stored)), nil
	default:
		s.backoff.reset(r)
		return reconcile.Result{}, nil
	}
}

// readBinding returns the newest observed version of the binding, or nil if it is not found or is
// being deleted. The binding is shared with the cache and must not be modified.
func (s *scheduler) readBinding(ctx context.Context, r request) (binding.Object, error) {
	cached := binding.New(r.namespaced)
	if err := s.karmada.Get(ctx, r.NamespacedName, cached, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading the binding: %w", err)
	}
	stored := loop.Latest(s.ownWrites, r, cached)
	if stored.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return stored, nil
}

func (s *scheduler) handles(bound binding.Object) bool {
	return placement.IsHandledBy(bound, bound.BindingSpec(), s.options.Name)
}

// stopTracking removes the in-memory state of a binding that is deleted or that this scheduler does
// not handle.
func (s *scheduler) stopTracking(r request) {
	s.backoff.reset(r)
	s.ownWrites.Forget(r)
	s.reportedFailures.remove(r)
	s.assumptions.release(r)
}
