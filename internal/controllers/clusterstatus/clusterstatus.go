// Package clusterstatus answers "how is a member cluster, and what can it do?":
// it probes the member and writes health, version, APIs and room into the status
// of the Cluster.
//
// Every member is looked at by a worker of its own. What cannot be found out
// keeps its last known value; a condition says so.
package clusterstatus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
)

// Name is the name of the controller in flags and logs.
const Name = "cluster-status-controller"

// Options are what operators may tune.
type Options struct {
	// Period is how often each member is looked at.
	Period time.Duration
	// Thresholds are how long a change of health must last.
	Thresholds domain.Thresholds
	// Inventory watches nodes and Pods of members to sum up their resources.
	Inventory bool
	// Models are used to grade nodes as the Cluster describes.
	Models bool
	// Mode is the sync mode whose clusters this process serves.
	Mode clusterv1alpha1.ClusterSyncMode
}

// DefaultOptions serve the push mode clusters.
func DefaultOptions() Options {
	return Options{
		Period: 10 * time.Second, Thresholds: domain.DefaultThresholds(), Inventory: true, Models: true, Mode: clusterv1alpha1.Push,
	}
}

const (
	baseDelay = 100 * time.Millisecond
	// settle is when a member is looked at again whose first lists have not
	// arrived yet.
	settle = time.Second
)

// Members opens the way into member clusters.
type Members interface {
	For(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*member.Member, error)
}

type controller struct {
	options Options
	karmada client.Client
	cache   cache.Cache
	members Members
	events  *observe.Events
	pools   *fanout.Pools
	now     func() time.Time

	mu       sync.Mutex
	health   map[string]domain.Observation
	measured *measurements
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, members Members, o Options) error {
	measured, err := newMeasurements(metrics.Registry)
	if err != nil {
		return err
	}
	c := &controller{
		options: o, karmada: mgr.GetClient(), cache: mgr.GetCache(), members: members, now: time.Now,
		events: observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
		health: map[string]domain.Observation{}, measured: measured,
	}
	c.pools = fanout.New(fanout.Options{Name: Name, Workers: 1, BaseDelay: baseDelay, MaxDelay: o.Period}, c.reconcile)
	return mgr.Add(c)
}

// Start implements manager.Runnable.
func (c *controller) Start(ctx context.Context) error {
	clusters, err := c.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	if _, err := clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.queue(obj) },
		UpdateFunc: func(before, after any) {
			older, ok := before.(*clusterv1alpha1.Cluster)
			newer, ok2 := after.(*clusterv1alpha1.Cluster)
			if ok && ok2 && (older.Generation != newer.Generation || len(older.Finalizers) != len(newer.Finalizers)) {
				c.queue(newer)
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if gone, ok := obj.(*clusterv1alpha1.Cluster); ok {
				c.forget(gone.Name)
			}
		},
	}); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	return c.pools.Start(ctx)
}

func (c *controller) queue(obj any) {
	if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok {
		c.pools.Add(cluster.Name, types.NamespacedName{Name: cluster.Name}, fanout.Live, 0)
	}
}

// forget drops all that is remembered of a cluster that is gone. Its worker ends
// first, and remembers nothing from then on.
func (c *controller) forget(name string) {
	c.pools.Drop(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.health, name)
	c.measured.forget(name)
}

func (c *controller) reconcile(ctx context.Context, _ string, key types.NamespacedName) (reconcile.Result, error) {
	stored := &clusterv1alpha1.Cluster{}
	if err := c.karmada.Get(ctx, key, stored); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !c.ours(stored) {
		return reconcile.Result{}, nil
	}
	started := c.now()
	seen := c.look(ctx, stored)
	reported := stored.DeepCopy()
	if ctx.Err() != nil {
		// It is gone; what a look found that was broken off says nothing.
		return reconcile.Result{}, ctx.Err()
	}
	c.report(reported, seen)
	c.measure(ctx, reported, c.now().Sub(started))
	if _, err := patch.Status(ctx, c.karmada, stored, reported); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	c.tell(stored, reported)
	if seen.settling {
		return reconcile.Result{RequeueAfter: settle}, nil
	}
	return reconcile.Result{RequeueAfter: c.options.Period}, nil
}

// tell tells that a member was lost, and that it is back. That a new one is ready
// is no news.
func (c *controller) tell(stored, reported *clusterv1alpha1.Cluster) {
	before := conditions.Get(stored.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	now := conditions.Get(reported.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case now == nil || before != nil && before.Status == now.Status:
	case now.Status != metav1.ConditionTrue:
		c.events.Failed(reported, now.Reason, errors.New(now.Message))
	case before != nil:
		c.events.Recovered(reported, before.Reason)
		c.events.Decided(reported, now.Reason, "%s", now.Message)
	}
}

// ours tells whether this process looks after a cluster. One without the
// finalizer is not prepared yet.
func (c *controller) ours(cluster *clusterv1alpha1.Cluster) bool {
	if cluster.Spec.SyncMode != c.options.Mode || cluster.DeletionTimestamp != nil {
		return false
	}
	return controllerutil.ContainsFinalizer(cluster, clusterv1alpha1.ClusterControllerFinalizer)
}

// measure shows the cluster in the metrics, unless it is gone.
func (c *controller) measure(ctx context.Context, cluster *clusterv1alpha1.Cluster, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		c.measured.record(cluster, took)
	}
}

// report brings the status in line with what was seen.
func (c *controller) report(cluster *clusterv1alpha1.Cluster, seen sight) {
	now := c.now()
	healthy := seen.ready.Status == metav1.ConditionTrue
	observation, first := c.observe(cluster.Name, healthy, now)
	stored := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	ready := domain.Readiness(stored, seen.ready, observation, first, c.options.Thresholds, now)
	conditions.Set(&cluster.Status.Conditions, ready)
	if !healthy || ready.Status != metav1.ConditionTrue {
		return
	}
	if seen.version != "" {
		cluster.Status.KubernetesVersion = seen.version
	}
	cluster.Status.APIEnablements = domain.MergeEnablements(cluster.Status.APIEnablements, seen.enablements, seen.complete)
	conditions.Set(&cluster.Status.Conditions,
		domain.Completeness(seen.enablements, seen.complete, cluster.Generation, metav1.NewTime(now)))
	if seen.nodes != nil {
		cluster.Status.NodeSummary, cluster.Status.ResourceSummary = seen.nodes, seen.resources
	}
}

func (c *controller) observe(name string, healthy bool, now time.Time) (observation domain.Observation, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := c.health[name]
	if known {
		observation = domain.Observe(&before, healthy, now)
	} else {
		observation = domain.Observe(nil, healthy, now)
	}
	c.health[name] = observation
	return observation, !known
}
