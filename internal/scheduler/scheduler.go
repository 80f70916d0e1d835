// Package scheduler answers "where does each binding go, and who has to be asked
// again when something changed?". It is the loop around the decisions of package
// placement: it queues bindings by their priority, looks at them with a snapshot
// of all clusters, and stores the result.
//
// Invariants:
//   - a pass writes at most twice: the clusters together with the placement they
//     were chosen for, and then the status. It writes nothing when nothing differs;
//   - clusters are only written over the very version of the binding that was
//     looked at, so nobody's change is undone;
//   - no binding is looked at before all clusters are known, since a missing
//     cluster looks like one that is gone;
//   - work follows changes: bindings are scanned only when a cluster changed in a
//     way that placements can depend on.
package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// Options are what operators may tune.
type Options struct {
	// Name is the scheduler whose bindings are handled, and the source of events.
	Name string
	// Workers is how many bindings are scheduled at once. The same binding never
	// is.
	Workers int
	// Plugins selects filters and scores; none given means all.
	Plugins  placement.Plugins
	Features placement.Features
	// PriorityScheduling takes bindings in the order of their priority, and lets
	// those for which there is no room wait for room. Without it the order is
	// that of arrival and every failure is retried alike.
	PriorityScheduling bool
	// BaseDelay and MaxDelay bound the exponential back-off of a binding that
	// failed.
	BaseDelay, MaxDelay time.Duration
	// CapacityDelay is how long a binding for which there is no room waits if
	// nothing tells that there is more.
	CapacityDelay time.Duration
	// ForeignDelay is how long another scheduler has to report on a binding that names
	// it. After that time this scheduler says that none has.
	ForeignDelay time.Duration
	// Registry is where metrics are registered.
	Registry prometheus.Registerer
}

// DefaultOptions are those of the default scheduler with all plugins.
func DefaultOptions() Options {
	return Options{
		Name: policyv1alpha1.DefaultSchedulerName, Workers: 4, Plugins: placement.Plugins{"*"}, PriorityScheduling: true,
		BaseDelay: time.Second, MaxDelay: 10 * time.Second, CapacityDelay: 5 * time.Minute,
		ForeignDelay: 10 * time.Second, Registry: ctrlmetrics.Registry,
	}
}

type scheduler struct {
	options    Options
	karmada    client.Client
	live       client.Reader
	cache      cache.Cache
	estimators []Estimator
	events     *observe.Events
	clusters   *world
	backlog    *backlog
	recent     *recent
	told       *told
	foreign    *foreign
	measured   measurements
	now        func() time.Time
	// grouped keeps members of workload affinity groups from being placed at the
	// same time: each has to see where the others went.
	grouped sync.Mutex
}

// Add registers the scheduler with a manager. Of what the estimators say of a
// cluster the least counts; without estimators clusters have room for everything.
func Add(mgr manager.Manager, estimators []Estimator, o Options) error {
	s := &scheduler{
		options: o, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(), estimators: estimators,
		events:   observe.NewEvents(mgr.GetEventRecorderFor(o.Name)), //nolint:staticcheck // the newer recorder writes another API
		clusters: newWorld(), backlog: newBacklog(o), recent: newRecent(), told: newTold(), foreign: newForeign(), now: time.Now,
	}
	measured, err := newMeasurements(o.Registry)
	if err != nil {
		return err
	}
	s.measured = measured
	if err := s.indexGroups(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	logger := mgr.GetLogger().WithValues("controller", "scheduler", "scheduler", o.Name)
	options := queues.Options[request](mgr, o.Workers, queues.Backoff{Base: o.BaseDelay, Max: o.MaxDelay})
	options.Reconciler, options.NewQueue = s, queues.ByPriority[request]
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

// pass is one look at one binding.
type pass struct {
	request  request
	stored   binding.Object
	world    *snapshot
	decision placement.Decision
	started  time.Time
}

// Reconcile implements reconcile.TypedReconciler. Errors are those of reading;
// everything else is said in the status of the binding.
func (s *scheduler) Reconcile(ctx context.Context, r request) (reconcile.Result, error) {
	stored, err := s.read(ctx, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	if stored == nil || !s.owns(stored) {
		s.forget(r)
		return s.reportUnserved(ctx, r, stored)
	}
	p := pass{request: r, stored: stored, world: s.clusters.snapshot(), started: s.now()}
	p.decision, err = decide(stored, p.world.find, s.options.Features)
	switch {
	case err != nil:
		desired, moved := s.leave(ctx, p)
		return s.finish(ctx, s.stored(p, desired, moved), failed(stored, err)), nil
	case p.decision.Action == placement.ActionSchedule:
		return s.schedule(ctx, p), nil
	case p.decision.Action == placement.ActionObserve:
		return s.finish(ctx, p, settled(stored)), nil
	default:
		s.backlog.settle(r)
		return reconcile.Result{}, nil
	}
}

// read returns the newest version of the binding that is known, nil if it is gone or
// about to go.
func (s *scheduler) read(ctx context.Context, r request) (binding.Object, error) {
	cached := binding.New(r.namespaced)
	if err := s.karmada.Get(ctx, r.NamespacedName, cached); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading the binding: %w", err)
	}
	stored := s.recent.latest(r, cached)
	if stored.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return stored, nil
}

func (s *scheduler) owns(of binding.Object) bool {
	return placement.IsHandledBy(of, of.BindingSpec(), s.options.Name)
}

// forget drops what is remembered of a binding that is gone, or that this scheduler
// does not handle.
func (s *scheduler) forget(r request) {
	s.backlog.settle(r)
	s.recent.forget(r)
	s.told.forget(r)
}
