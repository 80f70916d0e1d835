// Package descheduler removes replicas from clusters that cannot run them, so that the scheduler
// places them in other clusters. It periodically looks for bindings with fewer ready than assigned
// replicas, and asks the clusters' estimators how many of the replicas have been unschedulable for
// too long.
//
// Invariants:
//   - A binding whose replicas are all ready causes no request and no write.
//   - A target keeps at least its ready replicas. No target gets more replicas, and no target is
//     added or removed. A target can keep 0 replicas.
//   - Missing data is no reason to remove replicas: a cluster keeps its replicas if its estimator
//     does not respond.
//   - Nothing is removed before the scheduler has processed the binding's latest change. Otherwise
//     replicas could be removed that no scheduler places again.
//   - A reconcile writes at most once. The write requires the resourceVersion that was read, so it
//     never reverts an eviction or another client's change.
//   - ClusterResourceBindings are ignored, because cluster-scoped templates have no Pods.
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

// backoff applies to bindings whose reconcile failed.
var backoff = loop.Backoff{Base: 5 * time.Millisecond, Max: 1000 * time.Second}

// Options configures the descheduler.
type Options struct {
	// Interval is the time between two searches for bindings with unready replicas.
	Interval time.Duration
	// UnschedulableThreshold is how long a Pod must be unschedulable before its replica is removed.
	UnschedulableThreshold time.Duration
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Interval: 2 * time.Minute, UnschedulableThreshold: 5 * time.Minute}
}

// Estimator returns how many replicas of a workload are unschedulable.
type Estimator interface {
	// UnschedulableReplicas returns one estimate per cluster, in the order of clusters. Its count is
	// the number of replicas that have been unschedulable for longer than threshold, or
	// capacity.Unknown if the cluster has no estimator.
	//
	// UnschedulableReplicas must return after a timeout even if an estimator does not respond, and
	// later calls must not wait for this estimator again, because the descheduler has only one worker.
	UnschedulableReplicas(
		ctx context.Context, workload workv1alpha2.ObjectReference, threshold time.Duration, clusters []string,
	) []capacity.Estimate
}

type descheduler struct {
	options   Options
	karmada   client.Client
	cache     cache.Cache
	estimator Estimator
	events    *loop.Events
	// ownWrites tracks the descheduler's writes until the cache shows them. Without it, a stale
	// binding could lose the same replicas twice.
	ownWrites *loop.Writes[reconcile.Request]
	now       func() time.Time
}

// Add registers the descheduler with mgr.
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

// findCluster returns a lookup of cached clusters. The lookup returns nil for a cluster that is not in
// the cache. Its results must not be modified.
func (d *descheduler) findCluster(ctx context.Context) func(name string) *clusterv1alpha1.Cluster {
	return func(name string) *clusterv1alpha1.Cluster {
		cluster := &clusterv1alpha1.Cluster{}
		// A cluster that cannot be read counts as not found, so it keeps its replicas.
		if d.karmada.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy) != nil {
			return nil
		}
		return cluster
	}
}

// readBinding returns the cached binding, or nil if it does not exist or is being deleted. The binding
// must not be modified. The error is loop.ErrStale if the cache does not show the descheduler's last
// write yet.
func (d *descheduler) readBinding(ctx context.Context, r reconcile.Request) (*workv1alpha2.ResourceBinding, error) {
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
