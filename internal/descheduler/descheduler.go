// Package descheduler is the loop that uses the decisions of package descheduling: it
// periodically looks for bindings with missing ready replicas, asks the estimators of these
// clusters for unschedulable replicas, and takes these replicas away. The scheduler then places
// the replicas elsewhere.
//
// Invariants:
//   - Bindings without missing ready replicas cause no request and no write.
//   - A pass writes at most once. The write requires the version of the binding that was read, so it
//     never undoes an eviction or the change of another client.
//   - An estimator that fails only protects the replicas of its own cluster.
//   - ClusterResourceBindings are not processed, because templates without a namespace have no Pods.
package descheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/loop"
)

// Name is the name of the descheduler in logs, metrics and events.
const Name = "karmada-descheduler"

// backoff is the backoff of bindings that failed.
var backoff = loop.Backoff{Base: 5 * time.Millisecond, Max: 1000 * time.Second}

// Options are the options that operators may set.
type Options struct {
	// Interval is the time between two searches for bindings with missing ready replicas.
	Interval time.Duration
	// UnschedulableThreshold is how long a Pod must be unschedulable before its replica is taken
	// away.
	UnschedulableThreshold time.Duration
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Interval: 2 * time.Minute, UnschedulableThreshold: 5 * time.Minute}
}

// Estimator returns how many replicas of a workload are unschedulable.
type Estimator interface {
	// UnschedulableReplicas returns one estimate for each cluster, in the order of the clusters. The
	// count is the number of replicas that are unschedulable for longer than the threshold. It is
	// capacity.Unknown if the cluster has no estimator.
	//
	// UnschedulableReplicas returns after a timeout even if an estimator does not respond. Later
	// calls do not wait again for an estimator that did not respond, because the descheduler has
	// only one worker.
	UnschedulableReplicas(ctx context.Context, workload workv1alpha2.ObjectReference, threshold time.Duration, clusters []string) []capacity.Estimate
}

type descheduler struct {
	options   Options
	karmada   client.Client
	cache     cache.Cache
	estimator Estimator
	events    *loop.Events
	// ownWrites holds the versions of the bindings that the descheduler wrote and that the cache
	// does not show yet. Without ownWrites, replicas could be taken away twice.
	ownWrites *loop.Writes[reconcile.Request]
	now       func() time.Time
}

// Add registers the descheduler with a manager.
func Add(mgr manager.Manager, estimator Estimator, o Options) error {
	d := &descheduler{
		options: o, karmada: mgr.GetClient(), cache: mgr.GetCache(), estimator: estimator,
		events:    loop.EventsFor(mgr, Name, loop.EventModeChanges),
		ownWrites: loop.NewWrites[reconcile.Request](nil), now: time.Now,
	}
	logger := mgr.GetLogger().WithValues("controller", Name)
	options := loop.ControllerOptions[reconcile.Request](mgr, 1, backoff)
	options.Reconciler = d
	options.LogConstructor = func(r *reconcile.Request) logr.Logger {
		if r == nil {
			return logger
		}
		return logger.WithValues("binding", r.String())
	}
	c, err := controller.NewTyped(Name, mgr, options)
	if err != nil {
		return fmt.Errorf("building the descheduler: %w", err)
	}
	return c.Watch(&search{descheduler: d})
}

// findCluster returns a cluster of the cache, or nil if the cache does not contain it. The cluster
// must not be modified.
func (d *descheduler) findCluster(ctx context.Context) func(name string) *clusterv1alpha1.Cluster {
	return func(name string) *clusterv1alpha1.Cluster {
		cluster := &clusterv1alpha1.Cluster{}
		// A cluster that cannot be read keeps its replicas.
		if d.karmada.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy) != nil {
			return nil
		}
		return cluster
	}
}

// read returns a binding of the cache, or nil if the binding does not exist or is being deleted. The
// binding must not be modified. The error is loop.ErrStale if the cache does not show the last write
// of the descheduler.
func (d *descheduler) read(ctx context.Context, r reconcile.Request) (*workv1alpha2.ResourceBinding, error) {
	stored := &workv1alpha2.ResourceBinding{}
	err := d.karmada.Get(ctx, r.NamespacedName, stored, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the binding: %w", err)
	case stored.DeletionTimestamp != nil:
		return nil, nil
	case d.ownWrites.IsStale(r, stored):
		return nil, loop.ErrStale
	}
	return stored, nil
}
