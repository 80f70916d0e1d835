// Package tainteviction removes a cluster from the targets of a binding if the binding does not
// tolerate a NoExecute taint of the cluster, or no longer tolerates it.
//
// Invariants:
//
//   - A workload is evicted only for a taint that the Cluster has on the API server immediately
//     before the eviction.
//   - The process does not exceed its eviction rate, even if many clusters are tainted at the same
//     time. Bindings that need no eviction do not use up the rate.
//   - One eviction is one write. Other controllers choose new clusters and delete the old copy.
package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/toleration"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controllers in events. QueueName and ClusterQueueName are the names
// of the queues of the two scopes in logs and metrics.
const (
	Name             = "taint-manager"
	QueueName        = "binding-eviction"
	ClusterQueueName = "cluster-binding-eviction"
)

// Options configure the controllers.
type Options struct {
	// MissingFlags are the flags that the process lacks so that taints evict workloads. If there
	// are any, taints evict nothing, and each Cluster with a NoExecute taint reports that.
	MissingFlags []string
	// EvictionsPerSecond is the maximum number of evictions per second.
	EvictionsPerSecond float64
	// PurgeMode is the purge mode for workloads whose policy sets no purge mode.
	PurgeMode policyv1alpha1.PurgeMode
	// PreserveState enables the preservation of the state that a policy selects.
	PreserveState bool
	// Backoff is the backoff for evictions that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{EvictionsPerSecond: 0.5, PurgeMode: policyv1alpha1.PurgeModeGracefully, Backoff: loop.DefaultBackoff()}
}

// request identifies a binding and one of its clusters.
type request struct {
	types.NamespacedName
	cluster string
}

// reconciler serves the bindings of one scope.
type reconciler struct {
	options     Options
	namespaced  bool
	karmada     client.Client
	live        client.Reader
	cache       cache.Cache
	events      *loop.Events
	rateLimiter *rateLimiter
	backlog     *backlog
	metrics     evictionMetrics
	now         func() time.Time
}

// Add registers the controllers of both scopes with a manager, and adds the index of bindings by
// cluster. If evictions are disabled, it registers only the controller that reports that.
func Add(mgr manager.Manager, o Options) error {
	queueMetrics, err := newEvictionMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	report := &reporter{karmada: mgr.GetClient(), missingFlags: o.MissingFlags, now: time.Now}
	if err := report.addController(mgr, o.Backoff); err != nil || len(o.MissingFlags) > 0 {
		return err
	}
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), loop.BindingsByCluster); err != nil {
		return err
	}
	limiter := newRateLimiter(o.EvictionsPerSecond)
	for _, namespaced := range []bool{true, false} {
		r := &reconciler{
			options: o, namespaced: namespaced, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(),
			events:      loop.EventsFor(mgr, Name, loop.EventModeChanges),
			rateLimiter: limiter, backlog: newBacklog(queueMetrics, queueName(namespaced)), metrics: queueMetrics, now: time.Now,
		}
		if err := r.addController(mgr); err != nil {
			return err
		}
	}
	return nil
}

func queueName(namespaced bool) string {
	if namespaced {
		return QueueName
	}
	return ClusterQueueName
}

func (r *reconciler) addController(mgr manager.Manager) error {
	name := queueName(r.namespaced)
	logger := mgr.GetLogger().WithValues("controller", name)
	// One worker is enough, because the rate limit serializes evictions anyway.
	options := loop.ControllerOptions[request](mgr, 1, r.options.Backoff)
	options.Reconciler = r
	options.LogConstructor = func(req *request) logr.Logger {
		if req == nil {
			return logger
		}
		return logger.WithValues("binding", req.String(), "member", req.cluster)
	}
	c, err := controller.NewTyped(name, mgr, options)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", name, err)
	}
	return errors.Join(c.Watch(r.clusterSource()), c.Watch(r.bindingSource()))
}

// Reconcile implements reconcile.TypedReconciler.
func (r *reconciler) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	r.backlog.remove(req)
	_, stay, err := r.readStay(ctx, r.karmada, req)
	if err != nil || stay.Taint == nil {
		return reconcile.Result{}, err
	}
	if now := r.now(); !stay.IsOver(now) {
		return reconcile.Result{RequeueAfter: stay.Until.Sub(now)}, nil
	}
	requeueAfter := time.Duration(0)
	err = r.rateLimiter.runInTurn(ctx, func() (evicted bool, err error) {
		evicted, requeueAfter, err = r.evictIfDue(ctx, req)
		return evicted, err
	})
	if err != nil && ctx.Err() != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the process ends; the next one finds the taint
	}
	if err != nil {
		return loop.Result(err)
	}
	return reconcile.Result{RequeueAfter: requeueAfter}, nil
}

// readStay returns a binding and how long the binding may stay in the cluster. It reads the taints
// with the given reader. It returns the zero Deadline if no taint evicts the binding.
func (r *reconciler) readStay(ctx context.Context, reader client.Reader, req request) (binding.Object, toleration.Deadline, error) {
	bound, err := loop.GetActiveBinding(ctx, r.karmada, r.namespaced, req.NamespacedName)
	if err != nil || bound == nil {
		return nil, toleration.Deadline{}, err
	}
	if !failover.HasTarget(bound.BindingSpec(), req.cluster) {
		return bound, toleration.Deadline{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	err = reader.Get(ctx, types.NamespacedName{Name: req.cluster}, cluster)
	if apierrors.IsNotFound(err) {
		return bound, toleration.Deadline{}, nil
	}
	if err != nil {
		return nil, toleration.Deadline{}, fmt.Errorf("reading the taints of cluster %s: %w", req.cluster, err)
	}
	if cluster.DeletionTimestamp != nil {
		return bound, toleration.Deadline{}, nil // the scheduler removes the cluster from all bindings
	}
	stay, _ := failover.EvictionDeadline(cluster, bound)
	return bound, stay, nil
}

// evictIfDue reads the Cluster from the API server and decides again with its taints. It evicts the
// binding if its time in the cluster is over.
func (r *reconciler) evictIfDue(ctx context.Context, req request) (evicted bool, requeueAfter time.Duration, err error) {
	bound, stay, err := r.readStay(ctx, r.live, req)
	if err != nil || stay.Taint == nil {
		return false, 0, err
	}
	start := r.now()
	if !stay.IsOver(start) {
		return false, stay.Until.Sub(start), nil
	}
	eviction, err := r.evict(ctx, bound, req.cluster, stay)
	switch {
	case apierrors.IsConflict(err):
		return false, 0, err
	case apierrors.IsNotFound(err):
		return false, 0, nil
	case ctx.Err() != nil:
		return false, 0, err
	}
	r.metrics.observeEviction(queueName(r.namespaced), r.now().Sub(start), err)
	r.recordEvents(bound, eviction, err)
	if err == nil {
		klog.FromContext(ctx).Info("Evicting", "taint", stay.Taint.ToString())
	}
	return err == nil, 0, err
}

// evict removes the cluster from the targets of the binding. The write fails if the binding changed
// since it was read.
func (r *reconciler) evict(ctx context.Context, bound binding.Object, cluster string, stay toleration.Deadline) (failover.Eviction, error) {
	eviction, err := failover.ClusterEviction(bound, cluster, stay, r.options.PurgeMode, r.options.PreserveState)
	if err != nil {
		return failover.Eviction{From: cluster}, err
	}
	desired := binding.Copy(bound)
	failover.Evict(desired.BindingSpec(), eviction)
	_, err = patch.Object(ctx, r.karmada, bound, desired)
	return eviction, err
}

// recordEvents records on the binding and on the template that an eviction started, or once for
// each cause why an eviction failed. The end of the eviction is recorded by the controller that
// ends it.
func (r *reconciler) recordEvents(bound binding.Object, eviction failover.Eviction, err error) {
	for _, object := range []client.Object{bound, binding.TemplateReference(bound)} {
		if err == nil {
			r.events.ClearClusterFailure(eviction.From, object, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed)
			r.events.RecordDecision(object, workv1alpha2.EventReasonEvictionStarted, "Evicting %s", eviction.Describe())
			continue
		}
		r.events.RecordClusterFailure(eviction.From, object, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed,
			fmt.Errorf("evicting from cluster %s: %w", eviction.From, err))
	}
}
