// Package gracefuleviction processes the graceful eviction tasks of bindings.
//
// Invariants:
//
//   - The health of a workload is used only if a ready cluster reported it for the current
//     generation of the binding, and if the workload stays healthy for a minimum time. An old
//     report or a stale cache therefore ends no task.
//   - All decisions of a pass about a binding are stored with one write.
//   - A task that is kept after its grace period is reported once, in a condition and an event,
//     with a hint for the user.
package gracefuleviction

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name and ClusterName are the names of the controllers of the two scopes in logs, metrics and
// events.
const (
	Name        = "resource-binding-graceful-eviction-controller"
	ClusterName = "cluster-resource-binding-graceful-eviction-controller"
)

const (
	// applyRecheckDelay is the delay before the next pass if a replacement is healthy but its Work
	// is not applied yet.
	applyRecheckDelay = time.Second
	// purgePollInterval is the interval at which a pass checks whether an old copy is deleted.
	purgePollInterval = 5 * time.Second
)

// Options configure the controllers.
type Options struct {
	// Workers and ClusterWorkers are the numbers of bindings of each scope that are processed
	// in parallel.
	Workers, ClusterWorkers int
	// Timeout is the grace period for tasks that do not set a grace period.
	Timeout time.Duration
	// MinHealthyTime is how long a replacement must be healthy, because the status of a member lags
	// behind the applied manifest. StartupDelay is the time after the start of the process in which
	// no eviction ends because of health, because the stored status may be old and clusters need
	// some time to report the current status.
	MinHealthyTime, StartupDelay time.Duration
	// Backoff is the backoff for bindings that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 5, ClusterWorkers: 5, Timeout: 10 * time.Minute, MinHealthyTime: 2 * time.Second, StartupDelay: 5 * time.Second,
		Backoff: loop.DefaultBackoff(),
	}
}

// reconciler serves the bindings of one scope.
type reconciler struct {
	options       Options
	namespaced    bool
	karmada       client.Client
	live          client.Reader
	events        *loop.Events
	healthTracker *healthTracker
	now           func() time.Time
}

// Add registers the controllers of both scopes with a manager, and adds the index of bindings by
// cluster.
func Add(mgr manager.Manager, o Options) error {
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), loop.BindingsByCluster); err != nil {
		return err
	}
	for _, namespaced := range []bool{true, false} {
		name, workers := ClusterName, o.ClusterWorkers
		if namespaced {
			name, workers = Name, o.Workers
		}
		r := &reconciler{
			options: o, namespaced: namespaced, karmada: mgr.GetClient(), live: mgr.GetAPIReader(),
			events:        loop.EventsFor(mgr, name, loop.EventModeChanges),
			healthTracker: newHealthTracker(o.MinHealthyTime, o.StartupDelay), now: time.Now,
		}
		err := builder.ControllerManagedBy(mgr).Named(name).
			For(binding.New(namespaced), builder.WithPredicates(loop.OnlyMatchingBindings(hasEviction))).
			Watches(&clusterv1alpha1.Cluster{}, r.newClusterHandler()).
			WithOptions(loop.ControllerOptions[reconcile.Request](mgr, workers, o.Backoff)).
			Complete(r)
		if err != nil {
			return fmt.Errorf("setting up %s: %w", name, err)
		}
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bound, err := loop.GetActiveBinding(ctx, r.karmada, r.namespaced, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if bound == nil {
		r.healthTracker.deleteBinding(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	evaluation := &evaluation{ctx: ctx, reconciler: r, bound: bound, rendering: work.RenderingOf(bound), now: r.now(),
		healthyClusters: map[string]bool{}}
	outcome := failover.DecideEvictions(bound, evaluation.circumstances())
	if evaluation.firstErr != nil {
		return reconcile.Result{}, evaluation.firstErr
	}
	r.healthTracker.retainClusters(client.ObjectKeyFromObject(bound), evaluation.healthyClusters)
	stored, err := r.writeOutcome(ctx, bound, outcome)
	if err == nil {
		r.recordEvents(ctx, stored, outcome)
		err = r.reportHeld(ctx, stored, outcome)
	}
	if err != nil {
		return loop.Result(client.IgnoreNotFound(err))
	}
	return reconcile.Result{RequeueAfter: evaluation.requeueDelay(outcome)}, nil
}

// writeOutcome writes the remaining tasks and the departures of the ended tasks to the binding, and
// returns the written binding.
func (r *reconciler) writeOutcome(ctx context.Context, bound binding.Object, outcome failover.Outcome) (binding.Object, error) {
	desired := binding.Copy(bound)
	desired.BindingSpec().GracefulEvictionTasks = outcome.Tasks
	if len(outcome.Returned) > 0 {
		desired.BindingSpec().Clusters = outcome.Clusters
	}
	left := make([]string, len(outcome.Ended))
	for i := range outcome.Ended {
		left[i] = outcome.Ended[i].Task.FromCluster
	}
	binding.RecordDepartures(desired, left, r.now())
	_, err := patch.Object(ctx, r.karmada, bound, desired)
	return desired, err
}

// reportHeld updates the condition about held evictions.
func (r *reconciler) reportHeld(ctx context.Context, bound binding.Object, outcome failover.Outcome) error {
	desired := binding.Copy(bound)
	failover.SetEvictionHeld(desired, outcome, metav1.NewTime(r.now()))
	_, err := patch.Status(ctx, r.karmada, bound, desired)
	return err
}

// recordEvents records events for ended and held evictions, on the binding and on the template.
func (r *reconciler) recordEvents(ctx context.Context, bound binding.Object, outcome failover.Outcome) {
	objects := []client.Object{bound, binding.TemplateReference(bound)}
	recordEnded := func(list []failover.TaskResult, reason, message string) {
		for i := range list {
			from := list[i].Task.FromCluster
			for _, object := range objects {
				r.events.RecordDecision(object, reason, "%s %s; %s", message, failover.DescribeTask(&list[i].Task), list[i].Reason)
				r.events.ClearClusterFailure(from, object, workv1alpha2.EventReasonEvictionHeld)
			}
			klog.FromContext(ctx).Info(message, "member", from, "why", list[i].Reason)
		}
	}
	recordEnded(outcome.Ended, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed, "Evicted")
	recordEnded(outcome.Returned, workv1alpha2.EventReasonEvictionReturned, "Undid the eviction")
	for i := range outcome.Held {
		for _, object := range objects {
			r.events.RecordClusterFailure(outcome.Held[i].Task.FromCluster, object, workv1alpha2.EventReasonEvictionHeld,
				failover.HeldError(&outcome.Held[i]))
		}
	}
}
