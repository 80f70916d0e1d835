// Package execution creates, updates and deletes the objects of Works in member clusters, repairs
// drift, and reports the results in the conditions of the Works.
//
// It changes only objects that were created for the same Work, and objects whose policy says
// Overwrite. It deletes an object only if it is proven that the object belongs to the Work, and
// never because a fact is unknown. Each member has its own workers.
package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/deletionguard"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// Name is the name of the controller in flags, logs and events.
const Name = "execution-controller"

// Options configure the controller.
type Options struct {
	// Workers is the number of Works of one member that are processed in parallel.
	Workers int
	// Backoff is the backoff for Works that failed.
	Backoff loop.Backoff
	// Mode is the sync mode of the clusters that this process serves.
	Mode clusterv1alpha1.ClusterSyncMode
	// Guard decides about deletions. It must not be nil.
	Guard *deletionguard.Guard
	// DeletionsPerSecond and DeletionBurst limit the rate at which objects are deleted in one
	// member.
	DeletionsPerSecond float64
	DeletionBurst      int
	// Events selects the successes that are recorded as events.
	Events loop.EventMode
}

// DefaultOptions returns the options for push mode clusters.
func DefaultOptions() Options {
	return Options{
		Workers: 5, Backoff: loop.Backoff{Base: 5 * time.Millisecond, Max: 30 * time.Second}, Mode: clusterv1alpha1.Push,
		DeletionsPerSecond: 100, DeletionBurst: 500,
	}
}

// Members provides connections to member clusters and reports changes in these clusters.
type Members interface {
	GetForCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*member.Member, error)
	Subscribe(notify func(member.Event))
	CloseMember(name string)
	MemberHealth
}

// MemberHealth reports the health of members earlier than the conditions of their Clusters.
type MemberHealth interface {
	// IsHealthy reports whether the last probe of a member succeeded.
	IsHealthy(name string) bool
	OnRecovery(notify func(name string))
	// OnWatchRestored registers the function notify, which is called for each kind that a member
	// serves again.
	OnWatchRestored(notify func(name string, kind schema.GroupVersionKind))
}

type controller struct {
	options       Options
	karmada       client.Client
	cache         cache.Cache
	members       Members
	rules         interpreter.Source
	events        *loop.Events
	reports       *loop.StatusWriter
	scope         loop.SyncModeScope
	queues        *loop.MemberQueues
	tracker       *appliedTracker
	deletionRates *deletionRates
	metrics       *writeMetrics
	guard         *deletionguard.Guard
	now           func() time.Time
	// interpreted contains the Works whose manifests were applied with interpreter rules.
	interpreted interpreters.WorkIndex
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, members Members, rules interpreter.Source, reports *loop.StatusWriter, o Options) error {
	registered, err := newWriteMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	c := &controller{
		options: o, metrics: registered, scope: loop.SyncModeScope{Clusters: mgr.GetClient(), Mode: o.Mode}, karmada: mgr.GetClient(),
		cache: mgr.GetCache(), members: members, rules: rules, reports: reports,
		events:  loop.EventsFor(mgr, Name, o.Events),
		tracker: newAppliedTracker(), deletionRates: newDeletionRates(o.DeletionsPerSecond, o.DeletionBurst), guard: o.Guard, now: time.Now,
	}
	c.queues = loop.NewMemberQueues(loop.MemberQueueOptions{
		Name: Name, Workers: o.Workers, Backoff: o.Backoff, IsServed: c.scope.IsServed, OnRemoved: c.stopTrackingCluster,
	}, c.reconcile)
	members.Subscribe(c.handleMemberEvent)
	members.OnRecovery(c.queues.RetryNow)
	members.OnWatchRestored(c.requeueWorksOfKind)
	return errors.Join(mgr.Add(c), mgr.Add(interpreters.NewRunnable(rules, c.requeueForRules)))
}

// Start implements manager.Runnable.
func (c *controller) Start(ctx context.Context) error {
	if err := c.addEventHandlers(ctx); err != nil {
		return err
	}
	return c.queues.Start(ctx)
}

var (
	// errClusterNotReady reports that a deletion or a check waits until the cluster is ready.
	errClusterNotReady = errors.New("not ready")
	// errClusterNotResponding replaces the connection errors of a cluster that does not respond.
	// The texts of connection errors differ at each attempt, so that events with these texts would
	// not be deduplicated. The conditions of the Cluster show the cause.
	errClusterNotResponding = errors.New("does not respond; changes are applied when it responds again")
	// errCredentialsRejected reports that a cluster rejects the credentials of this process. The
	// condition CredentialsValid of the Cluster tells how to replace them.
	errCredentialsRejected = errors.New("rejects Karmada's credentials; changes are applied when it accepts them again")
)

// reconcile processes one Work. The Work and its Cluster are shared with the cache and must not be
// changed.
func (c *controller) reconcile(ctx context.Context, clusterName string, key types.NamespacedName) (reconcile.Result, error) {
	stored := &workv1alpha1.Work{}
	if err := c.karmada.Get(ctx, key, stored, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			c.stopTracking(key)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.karmada.Get(ctx, types.NamespacedName{Name: clusterName}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading cluster %q: %w", clusterName, err)
	}
	if cluster.Spec.SyncMode != c.options.Mode {
		return reconcile.Result{}, nil
	}
	if stored.DeletionTimestamp != nil {
		return c.deleteWork(ctx, cluster, stored)
	}
	return c.deliverWork(ctx, cluster, stored)
}

// deliverWork applies the manifests of the Work in the member and reports the result in the
// conditions of the Work.
func (c *controller) deliverWork(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	stored *workv1alpha1.Work) (reconcile.Result, error) {
	c.tracker.startPass(workKey(stored))
	c.recordDispatchingEvent(stored)
	if work.IsSuspended(stored) {
		return reconcile.Result{}, c.reportSuspended(ctx, cluster, stored)
	}
	c.events.RecordSuccess(stored, workv1alpha1.EventReasonWorkDispatching, "%s", work.DispatchingCondition(stored).Message)
	if !c.isReachable(cluster) {
		c.reportConditions(stored, loop.StatusSettled, work.DispatchingCondition(stored))
		return reconcile.Result{}, loop.ErrAwaitsRecovery
	}
	target, err := c.members.GetForCluster(ctx, cluster)
	if err != nil {
		c.reportConditions(stored, loop.StatusSettled, work.DispatchingCondition(stored))
		return reconcile.Result{}, err
	}
	d := &delivery{member: target, work: stored}
	failures := work.ExplainForbidden(c.applyAll(ctx, d), cluster.Annotations[clusterv1alpha1.MemberRoleAnnotation])
	if isUndecided(failures) {
		c.reportConditions(stored, loop.StatusSettled, work.DispatchingCondition(stored))
		if c.members.IsHealthy(cluster.Name) {
			// Otherwise the conditions of the Cluster report the failure, or the member has just
			// started.
			c.recordFailureEvents(stored, workv1alpha1.EventReasonSyncFailed, eventError(cluster.Name, failures))
		}
		return reconcile.Result{}, errors.Join(failures...)
	}
	hasWritten := c.tracker.recordWrite(workKey(stored), d.hasWritten, c.now())
	c.reportConditions(stored, reportedState(hasWritten, failures), work.DispatchingCondition(stored), work.AppliedCondition(stored, failures))
	c.reportDeniedWatches(cluster, d)
	c.recordSyncEvents(stored, failures)
	c.reportDriftConflicts(d)
	return reconcile.Result{RequeueAfter: d.requeueAfter}, errors.Join(failures...)
}

// reportedState returns the pacing state in which the result of a pass is reported. After a write
// it returns the state in progress, so that the result is reported together with the new status
// that the write is expected to cause.
func reportedState(hasWritten bool, failures []error) loop.StatusState {
	switch {
	case len(failures) > 0:
		return loop.StatusFailed
	case hasWritten:
		return loop.StatusInProgress
	default:
		return loop.StatusSettled
	}
}

// reportConditions submits conditions of the Work to the status writer. No other controller writes
// these conditions.
func (c *controller) reportConditions(stored *workv1alpha1.Work, state loop.StatusState, reported ...metav1.Condition) {
	now := metav1.NewTime(c.now())
	for _, condition := range reported {
		condition.LastTransitionTime = now
		c.reports.Submit(stored, loop.ConditionPart(condition.Type), state, func(status *workv1alpha1.WorkStatus) {
			conditions.Set(&status.Conditions, condition)
		})
	}
}

// applyAll applies every manifest. It continues with the other manifests if one manifest fails.
func (c *controller) applyAll(ctx context.Context, d *delivery) (failures []error) {
	defer func(start time.Time) { c.metrics.observeSync(start, failures) }(time.Now())
	for ordinal, raw := range d.work.Spec.Workload.Manifests {
		manifest, err := work.DecodeManifest(raw)
		if err != nil {
			failures = append(failures, fmt.Errorf("cluster %s: reading manifest %d: %w", d.member.Name, ordinal, err))
			continue
		}
		d.kinds = append(d.kinds, manifest.GroupVersionKind())
		if err := work.ValidateDelivery(d.work, manifest); err != nil {
			failures = append(failures, fmt.Errorf("cluster %s: %w", d.member.Name, err))
			continue
		}
		if err := c.applyManifest(ctx, d, manifest); err != nil {
			failures = append(failures, err)
		}
	}
	return failures
}

// isReachable reports whether requests may be sent to the cluster. This is the case if the Ready
// condition of the cluster is true, or if the last probe succeeded and the condition is not updated
// yet.
func (c *controller) isReachable(cluster *clusterv1alpha1.Cluster) bool {
	return isReady(cluster) || c.members.IsHealthy(cluster.Name)
}

func isReady(cluster *clusterv1alpha1.Cluster) bool {
	return conditions.HasStatus(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue)
}
