// Package gracefuleviction answers "may the old copy of a workload that leaves a
// cluster go?": it works off the eviction tasks of bindings.
//
// Invariants:
//
//   - health counts only when it is known to be about what the binding says now, of
//     a cluster that can be asked, and when it lasts: an old report, or a cache that
//     is behind, ends no task;
//   - all that a pass decides about a binding is one write;
//   - a task that is kept longer than its time is told once, in a condition and an
//     event, with what helps.
package gracefuleviction

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
)

// Name and ClusterName are the names of the controllers of the two scopes in logs,
// metrics and events.
const (
	Name        = "resource-binding-graceful-eviction-controller"
	ClusterName = "cluster-resource-binding-graceful-eviction-controller"
)

const (
	// conflictDelay is when to look again at a binding that others changed meanwhile.
	conflictDelay = 50 * time.Millisecond
	// glance is when to look again at what is about to be known.
	glance = time.Second
	// purgePoll is when to look again whether an old copy is gone.
	purgePoll = 5 * time.Second
)

// Options are what operators may tune.
type Options struct {
	// Workers and ClusterWorkers are how many bindings of each scope are worked on at
	// once.
	Workers, ClusterWorkers int
	// Timeout is how long an eviction takes at most that does not say it itself.
	Timeout time.Duration
	// Steady is how long a replacement must be healthy to count: what a member
	// reports lags behind what it was given. Settle is how long a process that starts
	// ends no eviction by health: what is stored may have been reported long ago, and
	// clusters take a moment to tell how it is now.
	Steady, Settle time.Duration
	// Backoff is that of a binding that failed.
	Backoff queues.Backoff
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 5, ClusterWorkers: 5, Timeout: 10 * time.Minute, Steady: 2 * time.Second, Settle: 5 * time.Second,
		Backoff: queues.DefaultBackoff(),
	}
}

// Renderings tells of which generation of a binding the Works are made, 0 for none.
type Renderings interface {
	Concluded(of types.NamespacedName, uid types.UID) int64
}

// reconciler serves the bindings of one scope.
type reconciler struct {
	options    Options
	namespaced bool
	karmada    client.Client
	live       client.Reader
	renderings Renderings
	events     *observe.Events
	steady     *steady
	now        func() time.Time
}

// Add registers the controllers of both scopes with a manager that has the index of
// bindings by cluster.
func Add(mgr manager.Manager, renderings Renderings, o Options) error {
	for _, namespaced := range []bool{true, false} {
		name, workers := ClusterName, o.ClusterWorkers
		if namespaced {
			name, workers = Name, o.Workers
		}
		r := &reconciler{
			options: o, namespaced: namespaced, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), renderings: renderings,
			events: observe.NewEvents(mgr.GetEventRecorderFor(name)), //nolint:staticcheck // the newer recorder writes another API
			steady: newSteady(o.Steady, o.Settle), now: time.Now,
		}
		err := builder.ControllerManagedBy(mgr).Named(name).
			For(binding.New(namespaced), builder.WithPredicates(bindings.While(underEviction))).
			Watches(&clusterv1alpha1.Cluster{}, r.onCluster()).
			WithOptions(queues.Options[reconcile.Request](mgr, workers, o.Backoff)).
			Complete(r)
		if err != nil {
			return fmt.Errorf("setting up %s: %w", name, err)
		}
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bound, err := bindings.Living(ctx, r.karmada, r.namespaced, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if bound == nil {
		r.steady.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	look := r.look(ctx, bound)
	outcome := failover.WorkOff(bound, look.circumstances())
	if look.err != nil {
		return reconcile.Result{}, look.err
	}
	look.conclude()
	stored, err := r.store(ctx, bound, outcome)
	if err == nil {
		r.tell(ctx, stored, outcome)
		err = r.report(ctx, stored, outcome)
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{RequeueAfter: look.next(outcome)}, nil
}

// store writes what became of the evictions, and returns the binding as it is then.
func (r *reconciler) store(ctx context.Context, bound binding.Object, outcome failover.Outcome) (binding.Object, error) {
	desired := binding.Copy(bound)
	desired.BindingSpec().GracefulEvictionTasks = outcome.Tasks
	if len(outcome.Returned) > 0 {
		desired.BindingSpec().Clusters = outcome.Clusters
	}
	_, err := patch.Object(ctx, r.karmada, bound, desired)
	return desired, err
}

// report keeps the condition that tells of evictions that are held.
func (r *reconciler) report(ctx context.Context, bound binding.Object, outcome failover.Outcome) error {
	desired := binding.Copy(bound)
	failover.Report(desired, outcome, metav1.NewTime(r.now()))
	_, err := patch.Status(ctx, r.karmada, bound, desired)
	return err
}

// tell tells of evictions that came to their end, and of those that do not, on the
// binding and where users look.
func (r *reconciler) tell(ctx context.Context, bound binding.Object, outcome failover.Outcome) {
	objects := []client.Object{bound, binding.Template(bound)}
	ended := func(list []failover.Ended, reason, what string) {
		for i := range list {
			from := list[i].Task.FromCluster
			for _, object := range objects {
				r.events.Decided(object, reason, "%s %s; %s", what, failover.Describe(&list[i].Task), list[i].Why)
				r.events.RecoveredIn(from, object, workv1alpha2.EventReasonEvictionHeld)
			}
			klog.FromContext(ctx).Info(what, "member", from, "why", list[i].Why)
		}
	}
	ended(outcome.Ended, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed, "Evicted")
	ended(outcome.Returned, workv1alpha2.EventReasonEvictionReturned, "Undid the eviction")
	for i := range outcome.Held {
		for _, object := range objects {
			r.events.FailedIn(outcome.Held[i].Task.FromCluster, object, workv1alpha2.EventReasonEvictionHeld, failover.HeldError(&outcome.Held[i]))
		}
	}
}
