// Package clusterstatus probes each member and writes its health, version, APIs and resources to the
// status of its Cluster.
//
// Every member has its own worker. If something cannot be read from the member, the status keeps the
// last observed value, and a condition reports the failure.
package clusterstatus

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in flags and logs.
const Name = "cluster-status-controller"

// Options are the settings that operators may change.
type Options struct {
	// Period is the time between two probes of a member.
	Period time.Duration
	// Thresholds specify how long a change of health must last before it is reported.
	Thresholds domain.Thresholds
	// Inventory enables the watches for the members' nodes and Pods, from which the members' resources
	// are computed.
	Inventory bool
	// Models enables grading nodes by the Cluster's resource models.
	Models bool
	// InventoryTimeout is the time after which a failure is reported if the first lists of nodes and
	// Pods have not been received. The controller continues to wait for them. 0 means no limit.
	InventoryTimeout time.Duration
	// Mode is the sync mode of the clusters that this process serves.
	Mode clusterv1alpha1.ClusterSyncMode
	// ClusterName is the name of the only served cluster. Empty means all clusters in Mode.
	ClusterName string
	// OnHealthy is called after each healthy probe of a member. It may be nil.
	OnHealthy func(ctx context.Context, cluster *clusterv1alpha1.Cluster)
}

// DefaultOptions returns the options for clusters in push mode.
func DefaultOptions() Options {
	return Options{
		Period: 10 * time.Second, Thresholds: domain.DefaultThresholds(), Inventory: true, Models: true,
		InventoryTimeout: 2 * time.Minute, Mode: clusterv1alpha1.Push,
	}
}

const (
	baseDelay = 100 * time.Millisecond
	// retryInterval is the delay before the next probe if the status is expected to change soon,
	// because the member is unhealthy, its health has not lasted long enough, or its first lists are
	// missing.
	retryInterval = time.Second
)

// Members returns connections to member clusters.
type Members interface {
	GetForCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*member.Member, error)
	OnUnhealthy(notify func(name string))
	CloseMember(name string)
}

type controller struct {
	options Options
	karmada client.Client
	cache   cache.Cache
	members Members
	events  *loop.Events
	queues  *loop.MemberQueues
	now     func() time.Time
	metrics *clusterMetrics
}

// Add registers the controller with mgr.
func Add(mgr manager.Manager, members Members, o Options) error {
	measured, err := newClusterMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	c := &controller{
		options: o, karmada: mgr.GetClient(), cache: mgr.GetCache(), members: members, now: time.Now,
		events:  loop.EventsFor(mgr, Name, loop.EventModeChanges),
		metrics: measured,
	}
	c.queues = loop.NewMemberQueues(loop.MemberQueueOptions{
		Name: Name, Workers: 1, Backoff: loop.Backoff{Base: baseDelay, Max: o.Period}, IsServed: c.isServedName,
		OnRemoved: measured.deleteCluster,
	}, c.reconcile)
	members.OnUnhealthy(c.enqueue)
	return mgr.Add(c)
}

// Start implements manager.Runnable.
func (c *controller) Start(ctx context.Context) error {
	clusters, err := c.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	if _, err := clusters.AddEventHandler(loop.Handlers[*clusterv1alpha1.Cluster]{
		Added:   func(cluster *clusterv1alpha1.Cluster, _ bool) { c.enqueue(cluster.Name) },
		Updated: c.handleUpdate,
		Deleted: func(lastKnown *clusterv1alpha1.Cluster) { c.stopServing(lastKnown.Name) },
	}); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	return c.queues.Start(ctx)
}

// enqueue adds a member to its queue without a delay.
func (c *controller) enqueue(name string) {
	c.queues.Add(name, types.NamespacedName{Name: name}, loop.LivePriority, 0)
}

// handleUpdate queues a cluster whose spec changed. It stops serving a cluster that another process
// serves from now on.
func (c *controller) handleUpdate(older, newer *clusterv1alpha1.Cluster) {
	switch {
	case c.isServed(older) && !c.isServed(newer):
		c.stopServing(newer.Name)
	case older.Generation != newer.Generation || len(older.Finalizers) != len(newer.Finalizers):
		c.enqueue(newer.Name)
	}
}

// stopServing stops the cluster's worker and closes the connection to the member.
func (c *controller) stopServing(name string) {
	c.queues.RemoveCluster(name)
	c.members.CloseMember(name)
}

func (c *controller) reconcile(ctx context.Context, _ string, key types.NamespacedName) (reconcile.Result, error) {
	stored := &clusterv1alpha1.Cluster{}
	if err := c.karmada.Get(ctx, key, stored); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !c.isServed(stored) {
		return reconcile.Result{}, nil
	}
	started := c.now()
	result := c.probe(ctx, stored)
	readiness := domain.DecideReadiness(stored.Status.Conditions, result.ready, c.options.Thresholds, started)
	if readiness.Responding == nil && result.healthy() {
		c.readDetails(ctx, stored, &result)
	}
	if ctx.Err() != nil {
		// The cluster is no longer served, so ignore the result of the interrupted probe.
		return reconcile.Result{}, ctx.Err()
	}
	reported := stored.DeepCopy()
	readiness.Apply(&reported.Status.Conditions)
	c.setCredentialsCondition(reported, result.target)
	c.setIdentityCondition(reported, result)
	c.setBoundsCondition(reported, result.target)
	c.setStatus(reported, result)
	c.metrics.record(reported, c.now().Sub(started))
	if _, err := patch.Status(ctx, c.karmada, stored, reported); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	c.recordEvents(stored, reported, result)
	if result.healthy() && c.options.OnHealthy != nil {
		c.options.OnHealthy(ctx, reported)
	}
	return reconcile.Result{RequeueAfter: c.requeueDelay(result, readiness)}, nil
}

// requeueDelay returns the delay before the next probe. An early probe costs little, because it reads
// only the health.
func (c *controller) requeueDelay(result probeResult, readiness domain.ReadinessDecision) time.Duration {
	pause := c.options.Period
	if result.mayRecover || result.inventoryPending || readiness.Responding != nil {
		pause = min(pause, retryInterval)
	}
	if readiness.Remaining > 0 {
		pause = min(pause, readiness.Remaining)
	}
	return pause
}

// recordEvents records an event when a member stops being ready, and another event when it is ready
// again. It records no event for a new member that is ready.
func (c *controller) recordEvents(stored, reported *clusterv1alpha1.Cluster, result probeResult) {
	switch {
	case result.inventoryErr != nil:
		c.events.RecordFailure(reported, clusterv1alpha1.ClusterReasonStatusCollectionFailed, result.inventoryErr)
	case result.nodes != nil:
		c.events.ClearFailure(reported, clusterv1alpha1.ClusterReasonStatusCollectionFailed)
	}
	before := conditions.Get(stored.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	now := conditions.Get(reported.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	c.recordCredentialEvents(stored, reported)
	c.recordIdentityEvents(stored, reported)
	c.recordBoundsEvents(stored, reported)
	switch {
	case now == nil || before != nil && before.Status == now.Status:
	case now.Status != metav1.ConditionTrue:
		c.events.RecordFailure(reported, now.Reason, errors.New(now.Message))
	case before != nil:
		c.events.ClearFailure(reported, before.Reason)
		c.events.RecordDecision(reported, now.Reason, "%s", now.Message)
	}
}

// isServed reports whether this process serves the cluster. It returns false for a cluster without the
// finalizer, because that cluster is not prepared yet. A cluster in deletion is served until it no
// longer exists, because its health determines whether its objects can be removed from the member.
func (c *controller) isServed(cluster *clusterv1alpha1.Cluster) bool {
	if cluster.Spec.SyncMode != c.options.Mode || c.options.ClusterName != "" && cluster.Name != c.options.ClusterName {
		return false
	}
	return controllerutil.ContainsFinalizer(cluster, clusterv1alpha1.ClusterControllerFinalizer)
}

// isServedName reports whether this process serves the cached cluster with the given name.
func (c *controller) isServedName(ctx context.Context, name string) bool {
	cluster := &clusterv1alpha1.Cluster{}
	err := c.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	return err == nil && c.isServed(cluster)
}

// setStatus writes the member's responses to the status. It does not change fields for which the member
// did not respond.
func (c *controller) setStatus(cluster *clusterv1alpha1.Cluster, result probeResult) {
	if result.version != "" {
		cluster.Status.KubernetesVersion = result.version
	}
	if result.apisRead {
		cluster.Status.APIEnablements = domain.MergeAPIEnablements(cluster.Status.APIEnablements, result.enablements, result.isUnknown)
		conditions.Set(&cluster.Status.Conditions,
			domain.CompleteAPIEnablementsCondition(result.enablements, result.complete, cluster.Generation, metav1.NewTime(c.now())))
	}
	if result.nodes != nil {
		cluster.Status.NodeSummary, cluster.Status.ResourceSummary = result.nodes, result.resources
	}
}

// setCredentialsCondition updates the condition about the member's credentials.
func (c *controller) setCredentialsCondition(cluster *clusterv1alpha1.Cluster, target *member.Member) {
	if target == nil {
		return
	}
	credentials, ok := target.Credentials()
	if !ok {
		return
	}
	stored := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid)
	if condition := domain.CredentialsCondition(stored, credentials, cluster.Generation, c.now()); condition != nil {
		conditions.Set(&cluster.Status.Conditions, *condition)
	}
}

// credentialsPrefix is the prefix of the event reasons about credentials.
const credentialsPrefix = "Credentials"

// recordCredentialEvents records an event when the credentials must be replaced, and another event when
// they are valid again.
func (c *controller) recordCredentialEvents(stored, reported *clusterv1alpha1.Cluster) {
	before := conditions.Get(stored.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid)
	now := conditions.Get(reported.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid)
	switch {
	case now == nil || before != nil && before.Reason == now.Reason:
	case now.Reason != clusterv1alpha1.CredentialsValidReason:
		c.events.RecordFailure(reported, credentialsPrefix+now.Reason, errors.New(now.Message))
	case before != nil:
		c.events.ClearFailure(reported, credentialsPrefix+before.Reason)
		c.events.RecordDecision(reported, credentialsPrefix+now.Reason, "%s", now.Message)
	}
}
