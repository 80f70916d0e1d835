// Package scheduler assigns bindings to clusters. It is the reconcile loop that uses the decisions of
// package placement: it enqueues bindings by priority and after changes, schedules them with a
// snapshot of all clusters, and stores the result.
//
// Invariants:
//   - A pass writes at most twice: first the clusters together with the placement for which they
//     were chosen, and then the status. It writes nothing if nothing changed.
//   - A write of clusters requires the version of the binding that was read, so it never undoes the
//     change of another client.
//   - No binding is processed before all clusters are known, because an unknown cluster looks like
//     a deleted one.
//   - A changed cluster is compared only with the bindings that an index finds by the name, the
//     labels and the fields of the cluster.
package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Options are the options that operators may set.
type Options struct {
	// Name is the scheduler name that bindings use, and the source of the events.
	Name string
	// Workers is the number of bindings that are scheduled concurrently. Two workers never schedule
	// the same binding at the same time.
	Workers int
	// Plugins selects filter and score plugins. An empty list selects all plugins.
	Plugins  placement.Plugins
	Features placement.Features
	// PriorityScheduling orders bindings by their priority, and retries bindings that lack capacity
	// after CapacityDelay. If it is disabled, bindings are scheduled in order of arrival, and every
	// failure is retried with the same backoff.
	PriorityScheduling bool
	// OvercommitProtection subtracts workloads that were placed recently from the capacity of
	// clusters, until the clusters report these workloads as healthy.
	OvercommitProtection bool
	// BaseDelay and MaxDelay limit the exponential backoff after a failure.
	BaseDelay, MaxDelay time.Duration
	// CapacityDelay is the retry delay of a binding that lacks capacity. The binding is retried
	// earlier if a cluster reports more capacity.
	CapacityDelay time.Duration
	// ReportTimeout is how long this scheduler waits if a binding names another scheduler and that
	// scheduler does not report on the binding. After that time this scheduler reports in the
	// status of the binding that the other scheduler does not report.
	ReportTimeout time.Duration
}

// DefaultOptions returns the options of the default scheduler. They select all plugins.
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
	// deferredEvents records all events of the scheduler, and defers them under load.
	deferredEvents *eventBacklog
	clusters       *clusterSnapshots
	backoff        *failureBackoff
	// ownWrites holds the bindings that the scheduler wrote and that the cache does not show yet.
	// Without ownWrites the scheduler would process each binding again in its old state, and get a
	// conflict.
	ownWrites        *loop.Writes[request]
	reportedFailures *reportedFailures
	unreported       *unreportedTracker
	assumptions      *assumptions
	metrics          metrics
	now              func() time.Time
	// reservedTargets maps the request of a binding in a workload affinity group to the binding with
	// new targets, from their reservation until ownWrites holds the written binding.
	reservedTargets sync.Map
	// workloadGroupMu serializes the reservations in reservedTargets.
	workloadGroupMu sync.Mutex
}

// Add registers the scheduler with a manager. If several estimators in the table estimate a
// cluster, the lowest estimate counts. Without estimators every workload fits.
func Add(mgr manager.Manager, table []estimators.Row, o Options) error {
	s := &scheduler{
		options: o, karmada: mgr.GetClient(), liveReader: mgr.GetAPIReader(), cache: mgr.GetCache(), estimators: table,
		events:   loop.EventsFor(mgr, o.Name, loop.EventModeChanges),
		clusters: newClusterSnapshots(), backoff: newFailureBackoff(o), ownWrites: loop.NewWrites[request](nil), reportedFailures: newReportedFailures(), unreported: newUnreportedTracker(),
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

// pass is the processing of one binding.
type pass struct {
	request  request
	stored   binding.Object
	snapshot *snapshot
	decision placement.Decision
	started  time.Time
}

// Reconcile implements reconcile.TypedReconciler. It returns an error only if the binding cannot be
// read. It reports all other failures in the status of the binding.
func (s *scheduler) Reconcile(ctx context.Context, r request) (reconcile.Result, error) {
	stored, err := s.read(ctx, r)
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
		return s.finish(ctx, s.withStored(p, desired, changed), failedVerdict(stored, err)), nil
	case p.decision.Action == placement.ActionSchedule:
		return s.schedule(ctx, p), nil
	case p.decision.Action == placement.ActionObserve:
		return s.finish(ctx, p, unchangedVerdict(stored)), nil
	default:
		s.backoff.reset(r)
		return reconcile.Result{}, nil
	}
}

// read returns the newest known version of the binding, or nil if the binding is deleted or
// terminating. The binding is shared with the cache and must not be modified.
func (s *scheduler) read(ctx context.Context, r request) (binding.Object, error) {
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

// stopTracking removes all state in memory about a binding that is deleted or that this scheduler
// does not handle.
func (s *scheduler) stopTracking(r request) {
	s.backoff.reset(r)
	s.ownWrites.Forget(r)
	s.reportedFailures.remove(r)
	s.assumptions.release(r)
}
