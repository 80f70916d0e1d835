// Package execution answers "does the member hold what its Work says?": it
// creates, updates and deletes the objects of Works in member clusters, repairs
// drift, and reports what it did in the conditions of the Work.
//
// It changes only what it may: objects that were created for the same Work, or
// that the user told it to overwrite. It deletes only what it can prove to be of
// the Work, and never because something is unknown. Each member has workers of
// its own.
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
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/access/judge"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
)

// Name is the name of the controller in flags, logs and events.
const Name = "execution-controller"

// Options are what operators may tune.
type Options struct {
	// Workers is how many Works of one member are worked on at once.
	Workers int
	// Backoff is that of a Work that failed.
	Backoff queues.Backoff
	// Mode is the sync mode whose clusters this process serves.
	Mode clusterv1alpha1.ClusterSyncMode
	// Judge decides about deletions. It is nil in an agent, which cannot see why a Work
	// is deleted and asks for the verdict of the control plane.
	Judge *judge.Judge
	// Epoch returns the epoch in which a verdict of the control plane holds. It is asked
	// where Judge is nil.
	Epoch judge.ReadEpoch
	// DeletionsPerSecond and DeletionBurst bound how many objects are deleted in
	// one member.
	DeletionsPerSecond float64
	DeletionBurst      int
	// Events selects the successes that are written as events.
	Events observe.Mode
}

// DefaultOptions serve the push mode clusters.
func DefaultOptions() Options {
	return Options{
		Workers: 5, Backoff: queues.Backoff{Base: 5 * time.Millisecond, Max: 30 * time.Second}, Mode: clusterv1alpha1.Push,
		DeletionsPerSecond: 100, DeletionBurst: 500,
	}
}

// Members opens the way into member clusters.
type Members interface {
	For(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*member.Member, error)
	Subscribe(notify func(member.Event))
	Forget(name string)
	Signs
}

// Signs tell how members do, before their Clusters do.
type Signs interface {
	// Answers tells that a member was seen healthy last.
	Answers(name string) bool
	OnRecovery(notify func(name string))
	// OnReturn calls notify for each kind that a member serves again.
	OnReturn(notify func(name string, kind schema.GroupVersionKind))
}

type controller struct {
	options  Options
	karmada  client.Client
	cache    cache.Cache
	members  Members
	rules    interpreter.Source
	events   *observe.Events
	reports  *report.Works
	scope    fanout.Scope
	pools    *fanout.Pools
	applied  *ledger
	budgets  *budgets
	counters *counters
	// judge is nil where verdicts is not.
	judge    *judge.Judge
	verdicts *verdicts
	now      func() time.Time
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, members Members, rules interpreter.Source, reports *report.Works, o Options) error {
	measured, err := newCounters(metrics.Registry)
	if err != nil {
		return err
	}
	c := &controller{
		options: o, counters: measured, scope: fanout.Scope{Seen: mgr.GetClient(), Mode: o.Mode}, karmada: mgr.GetClient(), cache: mgr.GetCache(), members: members, rules: rules, reports: reports,
		events:  observe.NewEvents(mgr.GetEventRecorderFor(Name)).In(o.Events), //nolint:staticcheck // the newer recorder writes another API
		applied: newLedger(), budgets: newBudgets(o.DeletionsPerSecond, o.DeletionBurst), judge: o.Judge, now: time.Now,
	}
	if c.judge == nil {
		c.verdicts = newVerdicts(mgr.GetAPIReader(), o.Epoch, time.Now)
	}
	c.pools = fanout.New(fanout.Options{
		Name: Name, Workers: o.Workers, Backoff: o.Backoff, Serves: c.scope.Serves,
	}, c.reconcile)
	members.Subscribe(c.onMemberEvent)
	members.OnRecovery(c.pools.Wake)
	members.OnReturn(c.onReturn)
	return mgr.Add(c)
}

// Start implements manager.Runnable.
func (c *controller) Start(ctx context.Context) error {
	if c.judge != nil {
		if err := c.judge.Watch(ctx); err != nil {
			return err
		}
	}
	if err := c.watch(ctx); err != nil {
		return err
	}
	return c.pools.Start(ctx)
}

var (
	// errNotReady tells that delivery waits for the cluster.
	errNotReady = errors.New("not ready")
	// errSilent tells the same of a cluster that is not known to be lost yet. How
	// connections to it end varies from try to try, and is seen in its conditions.
	errSilent = errors.New("does not answer, changes wait for it")
)

func (c *controller) reconcile(ctx context.Context, clusterName string, key types.NamespacedName) (reconcile.Result, error) {
	stored := &workv1alpha1.Work{}
	if err := c.karmada.Get(ctx, key, stored); err != nil {
		if apierrors.IsNotFound(err) {
			c.forget(key)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.karmada.Get(ctx, types.NamespacedName{Name: clusterName}, cluster); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading cluster %q: %w", clusterName, err)
	}
	if cluster.Spec.SyncMode != c.options.Mode {
		return reconcile.Result{}, nil
	}
	if stored.DeletionTimestamp != nil {
		return c.withdraw(ctx, cluster, stored)
	}
	return c.deliver(ctx, cluster, stored)
}

// deliver brings the member in line with the Work and reports in its conditions.
func (c *controller) deliver(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (reconcile.Result, error) {
	c.tellDispatching(stored)
	if work.Suspended(stored) {
		return reconcile.Result{}, c.holdBack(ctx, cluster, stored)
	}
	c.events.Succeeded(stored, workv1alpha1.EventReasonWorkDispatching, "%s", work.Dispatching(stored).Message)
	if !c.usable(cluster) {
		c.report(stored, report.Soon, work.Dispatching(stored))
		return reconcile.Result{}, fmt.Errorf("cluster(%s) %w", cluster.Name, errNotReady)
	}
	target, err := c.members.For(ctx, cluster)
	if err != nil {
		c.report(stored, report.Soon, work.Dispatching(stored))
		return reconcile.Result{}, err
	}
	d := &delivery{target: target, of: stored}
	failures := work.ExplainForbidden(c.applyAll(ctx, d), cluster.Annotations[clusterv1alpha1.MemberRoleAnnotation])
	if unanswered(failures) {
		c.report(stored, report.Soon, work.Dispatching(stored))
		c.failed(stored, workv1alpha1.EventReasonSyncFailed, told(cluster.Name, failures))
		return reconcile.Result{}, errors.Join(failures...)
	}
	wrote := c.applied.noteWrite(nameOf(stored), d.wrote, c.now())
	c.report(stored, paceOf(wrote, failures), work.Dispatching(stored), work.Applied(stored, failures))
	c.reportDenials(cluster, d)
	c.tell(stored, failures)
	c.tellContests(d)
	return reconcile.Result{RequeueAfter: d.again}, errors.Join(failures...)
}

// paceOf is how much the outcome hurries: what was written is about to be answered
// by a status, with which it goes along. What was found as it should be is not.
func paceOf(wrote bool, failures []error) report.Pace {
	switch {
	case len(failures) > 0:
		return report.Now
	case wrote:
		return report.Later
	default:
		return report.Soon
	}
}

// report hands in the conditions, of which this controller is the only author.
func (c *controller) report(stored *workv1alpha1.Work, pace report.Pace, wanted ...metav1.Condition) {
	now := metav1.NewTime(c.now())
	for _, condition := range wanted {
		condition.LastTransitionTime = now
		c.reports.Report(stored, report.Condition(condition.Type), pace, func(status *workv1alpha1.WorkStatus) {
			conditions.Set(&status.Conditions, condition)
		})
	}
}

// applyAll applies every manifest; the failure of one does not stop the others.
func (c *controller) applyAll(ctx context.Context, d *delivery) (failures []error) {
	defer func(start time.Time) { c.counters.sync(start, failures) }(time.Now())
	for ordinal, raw := range d.of.Spec.Workload.Manifests {
		manifest, err := work.Decode(raw)
		if err != nil {
			failures = append(failures, fmt.Errorf("cluster %s: reading manifest %d: %w", d.target.Name, ordinal, err))
			continue
		}
		if err := work.Deliverable(d.of, manifest); err != nil {
			failures = append(failures, fmt.Errorf("cluster %s: %w", d.target.Name, err))
			continue
		}
		if err := c.apply(ctx, d, manifest); err != nil {
			failures = append(failures, err)
		}
	}
	return failures
}

// usable tells whether it is worth while to send something to the cluster: it is
// said to be ready, or it is seen healthy again and its condition waits whether
// that lasts.
func (c *controller) usable(cluster *clusterv1alpha1.Cluster) bool {
	return ready(cluster) || c.members.Answers(cluster.Name)
}

func ready(cluster *clusterv1alpha1.Cluster) bool {
	return conditions.Is(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue)
}
