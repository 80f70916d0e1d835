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
	"karmada.io/karmada/internal/access/queues"
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
	// Settle is how long the first lists of nodes and Pods may take before that is
	// told as a failure; they go on. 0 waits for ever.
	Settle time.Duration
	// Mode is the sync mode whose clusters this process serves.
	Mode clusterv1alpha1.ClusterSyncMode
	// Only is the name of the one cluster that is served; empty is all of the mode.
	Only string
	// OnHealthy is called after each look that found a member healthy; it may be nil.
	OnHealthy func(ctx context.Context, cluster *clusterv1alpha1.Cluster)
}

// DefaultOptions serve the push mode clusters.
func DefaultOptions() Options {
	return Options{
		Period: 10 * time.Second, Thresholds: domain.DefaultThresholds(), Inventory: true, Models: true,
		Settle: 2 * time.Minute, Mode: clusterv1alpha1.Push,
	}
}

const (
	baseDelay = 100 * time.Millisecond
	// soon is when a member is looked at again of which news is expected: because it
	// is not healthy, not healthy for long enough, or its first lists have not
	// arrived yet.
	soon = time.Second
)

// Members opens the way into member clusters.
type Members interface {
	For(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*member.Member, error)
	OnLoss(notify func(name string))
	Forget(name string)
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
		events:   observe.NewEvents(mgr.GetEventRecorderFor(Name)), //nolint:staticcheck // the newer recorder writes another API
		measured: measured,
	}
	c.pools = fanout.New(fanout.Options{
		Name: Name, Workers: 1, Backoff: queues.Backoff{Base: baseDelay, Max: o.Period}, Serves: c.serves,
	}, c.reconcile)
	members.OnLoss(c.look)
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
			if ok && ok2 {
				c.follow(older, newer)
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
		c.look(cluster.Name)
	}
}

// look has a member looked at now.
func (c *controller) look(name string) {
	c.pools.Add(name, types.NamespacedName{Name: name}, fanout.Live, 0)
}

// follow looks at a cluster that is described anew, and lays down one that another
// process serves from now on.
func (c *controller) follow(older, newer *clusterv1alpha1.Cluster) {
	switch {
	case c.ours(older) && !c.ours(newer):
		c.forget(newer.Name)
	case older.Generation != newer.Generation || len(older.Finalizers) != len(newer.Finalizers):
		c.look(newer.Name)
	}
}

// forget drops all that is known of a cluster that is gone, or not ours any more,
// and the connection to it. Its worker ends first, and remembers nothing from then
// on.
func (c *controller) forget(name string) {
	c.pools.Drop(name)
	c.members.Forget(name)
	c.mu.Lock()
	defer c.mu.Unlock()
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
	seen := c.probe(ctx, stored)
	judgement := domain.Judge(stored.Status.Conditions, seen.ready, c.options.Thresholds, started)
	if judgement.Answering == nil && seen.healthy() {
		c.ask(ctx, stored, &seen)
	}
	if ctx.Err() != nil {
		// It is gone; what a look found that was broken off says nothing.
		return reconcile.Result{}, ctx.Err()
	}
	reported := stored.DeepCopy()
	judgement.Apply(&reported.Status.Conditions)
	c.reportCredentials(reported, seen.target)
	c.reportIdentity(reported, seen)
	c.reportBounds(reported, seen.target)
	c.report(reported, seen)
	c.measure(ctx, reported, c.now().Sub(started))
	if _, err := patch.Status(ctx, c.karmada, stored, reported); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	c.tell(stored, reported, seen)
	if seen.healthy() && c.options.OnHealthy != nil {
		c.options.OnHealthy(ctx, reported)
	}
	return reconcile.Result{RequeueAfter: c.pause(seen, judgement)}, nil
}

// pause is when the member is looked at again. Looks that come sooner than usual
// are cheap: they ask for its health, and for nothing else.
func (c *controller) pause(seen sight, judgement domain.Judgement) time.Duration {
	pause := c.options.Period
	if seen.hopeful || seen.settling || judgement.Answering != nil {
		pause = min(pause, soon)
	}
	if judgement.Left > 0 {
		pause = min(pause, judgement.Left)
	}
	return pause
}

// tell tells that a member was lost, and that it is back. That a new one is ready
// is no news.
func (c *controller) tell(stored, reported *clusterv1alpha1.Cluster, seen sight) {
	switch {
	case seen.late != nil:
		c.events.Failed(reported, clusterv1alpha1.ClusterReasonStatusCollectionFailed, seen.late)
	case seen.nodes != nil:
		c.events.Recovered(reported, clusterv1alpha1.ClusterReasonStatusCollectionFailed)
	}
	before := conditions.Get(stored.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	now := conditions.Get(reported.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	c.tellCredentials(stored, reported)
	c.tellIdentity(stored, reported)
	c.tellBounds(stored, reported)
	switch {
	case now == nil || before != nil && before.Status == now.Status:
	case now.Status != metav1.ConditionTrue:
		c.events.Failed(reported, now.Reason, errors.New(now.Message))
	case before != nil:
		c.events.Recovered(reported, before.Reason)
		c.events.Decided(reported, now.Reason, "%s", now.Message)
	}
}

// ours tells whether this process looks after a cluster. One without the finalizer
// is not prepared yet. One that leaves is looked at to its end: whether its objects
// can be taken out of it depends on its health.
func (c *controller) ours(cluster *clusterv1alpha1.Cluster) bool {
	if cluster.Spec.SyncMode != c.options.Mode || c.options.Only != "" && cluster.Name != c.options.Only {
		return false
	}
	return controllerutil.ContainsFinalizer(cluster, clusterv1alpha1.ClusterControllerFinalizer)
}

// serves is ours by what the cache shows.
func (c *controller) serves(name string) bool {
	cluster := &clusterv1alpha1.Cluster{}
	err := c.karmada.Get(context.Background(), types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	return err == nil && c.ours(cluster)
}

// measure shows the cluster in the metrics, unless it is gone.
func (c *controller) measure(ctx context.Context, cluster *clusterv1alpha1.Cluster, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		c.measured.record(cluster, took)
	}
}

// report brings the status in line with what the member was asked. What it was not
// asked, or did not answer, stays as it was known.
func (c *controller) report(cluster *clusterv1alpha1.Cluster, seen sight) {
	if seen.version != "" {
		cluster.Status.KubernetesVersion = seen.version
	}
	if seen.asked {
		cluster.Status.APIEnablements = domain.MergeEnablements(cluster.Status.APIEnablements, seen.enablements, seen.unheard)
		conditions.Set(&cluster.Status.Conditions,
			domain.Completeness(seen.enablements, seen.complete, cluster.Generation, metav1.NewTime(c.now())))
	}
	if seen.nodes != nil {
		cluster.Status.NodeSummary, cluster.Status.ResourceSummary = seen.nodes, seen.resources
	}
}

// reportCredentials says what is known of what the member is reached with.
func (c *controller) reportCredentials(cluster *clusterv1alpha1.Cluster, target *member.Member) {
	if target == nil {
		return
	}
	known, ok := target.Credentials()
	if !ok {
		return
	}
	stored := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid)
	if condition := domain.CredentialsCondition(stored, known, cluster.Generation, c.now()); condition != nil {
		conditions.Set(&cluster.Status.Conditions, *condition)
	}
}

// credentials is what the reasons of events about them begin with.
const credentials = "Credentials"

// tellCredentials tells that somebody has to renew the credentials, and that it was
// done.
func (c *controller) tellCredentials(stored, reported *clusterv1alpha1.Cluster) {
	before := conditions.Get(stored.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid)
	now := conditions.Get(reported.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid)
	switch {
	case now == nil || before != nil && before.Reason == now.Reason:
	case now.Reason != clusterv1alpha1.CredentialsValidReason:
		c.events.Failed(reported, credentials+now.Reason, errors.New(now.Message))
	case before != nil:
		c.events.Recovered(reported, credentials+before.Reason)
		c.events.Decided(reported, credentials+now.Reason, "%s", now.Message)
	}
}
