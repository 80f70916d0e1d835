// Package tainteviction answers "must a workload leave a cluster because of its
// taints?": it takes clusters whose NoExecute taints are not tolerated, or not any
// longer, off the targets of bindings.
//
// Invariants:
//
//   - a workload is evicted only for a taint that the stored Cluster has, judged at
//     the very moment of acting;
//   - the process evicts no faster than it is told, however many clusters are
//     tainted at once, and what needs no eviction costs nothing of the rate;
//   - one eviction is one write; the way on, to other clusters and out of the old
//     one, belongs to others.
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
	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/toleration"
)

// Name is the name under which events are told. QueueName and ClusterQueueName are
// those of the queues of the two scopes in logs and metrics.
const (
	Name             = "taint-manager"
	QueueName        = "binding-eviction"
	ClusterQueueName = "cluster-binding-eviction"
)

// glance is when to look again at what has changed while it was decided upon.
const glance = 50 * time.Millisecond

// Options are what operators may tune.
type Options struct {
	// Enabled lets taints evict at all; without, only the metrics are there.
	Enabled bool
	// Rate is how many workloads are evicted in a second, at most; 0 is none.
	Rate float64
	// PurgeMode is how workloads leave that do not say it themselves.
	PurgeMode policyv1alpha1.PurgeMode
	// PreserveState takes the state along for which a policy asks.
	PreserveState bool
	// Backoff is that of an eviction that failed.
	Backoff queues.Backoff
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{Enabled: true, Rate: 0.5, PurgeMode: policyv1alpha1.PurgeModeGracefully, Backoff: queues.DefaultBackoff()}
}

// request names a binding and one of its clusters.
type request struct {
	types.NamespacedName
	cluster string
}

// reconciler serves the bindings of one scope.
type reconciler struct {
	options    Options
	namespaced bool
	karmada    client.Client
	live       client.Reader
	cache      cache.Cache
	events     *observe.Events
	pace       *pace
	backlog    *backlog
	measured   measurements
	now        func() time.Time
}

// Add registers the controllers of both scopes with a manager that has the index of
// bindings by cluster. With a rate of 0 there is nothing to do for them.
func Add(mgr manager.Manager, o Options) error {
	measured, err := newMeasurements(metrics.Registry)
	if err != nil {
		return err
	}
	if !o.Enabled {
		return nil
	}
	if o.Rate <= 0 {
		mgr.GetLogger().Info("Nothing is evicted for taints: --resource-eviction-rate is 0")
		return nil
	}
	shared := newPace(o.Rate)
	for _, namespaced := range []bool{true, false} {
		r := &reconciler{
			options: o, namespaced: namespaced, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(),
			events: observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
			pace:   shared, backlog: newBacklog(measured, queueName(namespaced)), measured: measured, now: time.Now,
		}
		if err := r.add(mgr); err != nil {
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

func (r *reconciler) add(mgr manager.Manager) error {
	name := queueName(r.namespaced)
	logger := mgr.GetLogger().WithValues("controller", name)
	// One worker: those that must leave wait for each other anyway.
	options := queues.Options[request](mgr, 1, r.options.Backoff)
	options.Reconciler = r
	options.LogConstructor = func(of *request) logr.Logger {
		if of == nil {
			return logger
		}
		return logger.WithValues("binding", of.String(), "member", of.cluster)
	}
	c, err := controller.NewTyped(name, mgr, options)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", name, err)
	}
	return errors.Join(c.Watch(r.clusters()), c.Watch(r.bindings()))
}

// Reconcile implements reconcile.TypedReconciler.
func (r *reconciler) Reconcile(ctx context.Context, of request) (reconcile.Result, error) {
	r.backlog.take(of)
	_, stay, err := r.look(ctx, r.karmada, of)
	if err != nil || stay.Taint == nil {
		return reconcile.Result{}, err
	}
	if now := r.now(); !stay.Over(now) {
		return reconcile.Result{RequeueAfter: stay.Until.Sub(now)}, nil
	}
	again := time.Duration(0)
	err = r.pace.do(ctx, func() (evicted bool, err error) {
		evicted, again, err = r.act(ctx, of)
		return evicted, err
	})
	if err != nil && ctx.Err() != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the process ends; the taint is still there for the next one
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// look reads a binding and how long it may stay in the cluster, by the taints that
// from knows. Where nothing drives it out the zero Stay is returned.
func (r *reconciler) look(ctx context.Context, from client.Reader, of request) (binding.Object, toleration.Stay, error) {
	bound, err := bindings.Living(ctx, r.karmada, r.namespaced, of.NamespacedName)
	if err != nil || bound == nil {
		return nil, toleration.Stay{}, err
	}
	if !failover.Targets(bound.BindingSpec(), of.cluster) {
		return bound, toleration.Stay{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	err = from.Get(ctx, types.NamespacedName{Name: of.cluster}, cluster)
	if apierrors.IsNotFound(err) {
		return bound, toleration.Stay{}, nil
	}
	if err != nil {
		return nil, toleration.Stay{}, fmt.Errorf("reading the taints of cluster %s: %w", of.cluster, err)
	}
	if cluster.DeletionTimestamp != nil {
		return bound, toleration.Stay{}, nil // the scheduler takes everything out of it
	}
	stay, _ := failover.StayIn(cluster, bound)
	return bound, stay, nil
}

// act looks once more, at the Cluster as it is stored, and evicts.
func (r *reconciler) act(ctx context.Context, of request) (evicted bool, again time.Duration, err error) {
	bound, stay, err := r.look(ctx, r.live, of)
	if err != nil || stay.Taint == nil {
		return false, 0, err
	}
	began := r.now()
	if !stay.Over(began) {
		return false, stay.Until.Sub(began), nil
	}
	eviction, err := r.evict(ctx, bound, of.cluster, stay)
	switch {
	case apierrors.IsConflict(err):
		return false, glance, nil
	case apierrors.IsNotFound(err):
		return false, 0, nil
	case ctx.Err() != nil:
		return false, 0, err
	}
	r.measured.evicted(queueName(r.namespaced), r.now().Sub(began), err)
	r.tell(bound, eviction, err)
	if err == nil {
		klog.FromContext(ctx).Info("Evicting", "taint", stay.Taint.ToString())
	}
	return err == nil, 0, err
}

// evict takes the cluster off the targets, if the binding is still as it was seen.
func (r *reconciler) evict(ctx context.Context, bound binding.Object, cluster string, stay toleration.Stay) (failover.Eviction, error) {
	eviction, err := failover.Cluster(bound, cluster, stay, r.options.PurgeMode, r.options.PreserveState)
	if err != nil {
		return failover.Eviction{From: cluster}, err
	}
	desired := binding.Copy(bound)
	failover.Evict(desired.BindingSpec(), eviction)
	_, err = patch.Object(ctx, r.karmada, bound, desired)
	return eviction, err
}

// tell says on the binding and on the template that an eviction begins, or why it
// failed, once until the cause changes. The controller that ends it says so.
func (r *reconciler) tell(bound binding.Object, eviction failover.Eviction, err error) {
	for _, object := range []client.Object{bound, binding.Template(bound)} {
		if err == nil {
			r.events.RecoveredIn(eviction.From, object, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed)
			r.events.Decided(object, workv1alpha2.EventReasonEvictionStarted, "Evicting %s", eviction.Describe())
			continue
		}
		r.events.FailedIn(eviction.From, object, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed,
			fmt.Errorf("evicting from cluster %s: %w", eviction.From, err))
	}
}
