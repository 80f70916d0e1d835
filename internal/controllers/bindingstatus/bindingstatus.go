// Package bindingstatus answers "how is a template in its clusters?": it gathers
// what the Works of a binding tell into the status of the binding, and sums that
// up in the status of the template.
//
// Both scopes of bindings go the same way. Invariants:
//
//   - a burst of reports becomes one write of the binding and one of the template;
//   - every pass computes both statuses from what is stored and writes the
//     differences only, so a write that was lost, or undone by others, is made up
//     for by the next pass;
//   - nothing is computed from an object older than one that this process wrote
//     or the binding was made from;
//   - a status is only ever given to the very object that the binding was made
//     for, told by its UID.
package bindingstatus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
)

// Name is the name of the controller in flags, logs and events.
const Name = "resource-binding-status-controller"

const (
	// conflictDelay is how long a pass that lost a race for a write waits for the
	// newer object to arrive.
	conflictDelay = 20 * time.Millisecond
	// unmadeDelay is when to look again at a binding whose Works were not made of its
	// present generation in time: whoever makes them has much to do, or waits.
	unmadeDelay = 5 * time.Second
	// passLimit bounds one pass, so that a kind that cannot be read or a webhook
	// that does not answer holds a worker for that long at most.
	passLimit = time.Minute
)

// Options are what operators may tune.
type Options struct {
	// Workers is how many bindings are worked on at once.
	Workers int
	// Backoff is that of a binding that failed.
	Backoff queues.Backoff
	// Window is how long reports on a binding are gathered before they are
	// written.
	Window time.Duration
	// Patience is how long a binding that changed waits for its Works to answer, and
	// one whose clusters are under way at least for a share of the budget for progress.
	Patience time.Duration
	// Events selects the successes that are written as events.
	Events observe.Mode
	// StatusBytes is how much of the status in one cluster is reflected, in bytes; 0 means
	// work.MaxStatusBytes.
	StatusBytes int
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: queues.DefaultBackoff(), Window: 60 * time.Millisecond, Patience: time.Second}
}

type reconciler struct {
	karmada    client.Client
	live       client.Reader
	templates  *template.Reader
	rules      interpreter.Source
	renderings Renderings
	events     *observe.Events
	written    *ledger
	patience   *patience
	// lag is the patience with Works whose newest state is on its way.
	lag        *patience
	background *slots
	without    *statusless
	now        func() time.Time
	// statusBytes is that of Options.
	statusBytes int
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, templates *template.Reader, rules interpreter.Source, renderings Renderings, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(), live: mgr.GetAPIReader(), templates: templates, rules: rules, renderings: renderings,
		events:  observe.NewEvents(mgr.GetEventRecorderFor(Name)).In(o.Events), //nolint:staticcheck // the newer recorder writes another API
		written: newLedger(), patience: newPatience(calm, o.Patience), without: newStatusless(), now: time.Now,
		lag: newPatience(lagCalm, o.Patience), background: newSlots(backgroundStep), statusBytes: o.StatusBytes,
	}
	if err := errors.Join(indexWorks(mgr.GetFieldIndexer()), indexBindings(mgr.GetFieldIndexer())); err != nil {
		return err
	}
	bindings, works := onBinding(o.Window, o.Patience), onWork(o.Window, o.Patience)
	options := queues.Options[reconcile.Request](mgr, o.Workers, o.Backoff)
	options.ReconciliationTimeout = passLimit
	return builder.ControllerManagedBy(mgr).Named(Name).
		Watches(&workv1alpha2.ResourceBinding{}, bindings).
		Watches(&workv1alpha2.ClusterResourceBinding{}, bindings).
		Watches(&workv1alpha1.Work{}, works).
		Watches(&clusterv1alpha1.Cluster{}, r.onCluster()).
		WatchesRawSource(r.onRendering(o.Window)).
		WithOptions(options).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. A request without a namespace is
// about a ClusterResourceBinding.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.background.free(request)
	stored, err := r.read(ctx, request)
	if apierrors.IsNotFound(err) {
		r.written.forget(request)
		r.patience.over(request)
		r.lag.over(request)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading binding %q: %w", request, err)
	}
	if stored.GetDeletionTimestamp() != nil || binding.PermanentID(stored) == "" {
		return reconcile.Result{}, nil
	}
	works, err := r.works(ctx, stored)
	if err != nil {
		return reconcile.Result{}, err
	}
	account := work.Gather(works, stored.BindingSpec().Resource, r.circumstances(ctx, stored))
	if wait := r.wait(request, stored, account); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := r.report(ctx, request, stored, account); err != nil {
		return outcome(err)
	}
	r.events.Succeeded(stored, workv1alpha2.EventReasonAggregateStatusSucceed, "Aggregated the status of %d clusters", len(account.Items))
	r.recordTroubles(stored, account.Items)
	result, err := outcome(r.sumUp(ctx, request, stored, account.Items))
	if err == nil && result.IsZero() && !r.made(stored) {
		// Nothing tells that the Works are found to be as they should be already.
		result.RequeueAfter = unmadeDelay
	}
	return result, err
}

// wait is how much longer what a binding has to tell should wait for what its
// clusters are about to say.
func (r *reconciler) wait(request reconcile.Request, stored binding.Object, account work.Account) time.Duration {
	expected, made := binding.Expected(stored.BindingSpec()), r.made(stored)
	if made && underWay(expected, account.Items) {
		return r.patience.wait(request, r.now())
	}
	r.patience.over(request)
	if !made || account.Behind(expected) {
		return r.lag.wait(request, r.now())
	}
	r.lag.over(request)
	return 0
}

// outcome says what an error means for the queue: a write that lost a race is
// tried again quietly, on what won.
func outcome(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	return reconcile.Result{}, err
}

// read is the binding as stored; it must not be modified. It is asked for live
// only while the cache does not show what was last written here.
func (r *reconciler) read(ctx context.Context, request reconcile.Request) (binding.Object, error) {
	stored := binding.New(request.Namespace != "")
	if err := r.karmada.Get(ctx, request.NamespacedName, stored, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	if !older(stored.GetResourceVersion(), r.written.versions(request).binding) {
		return stored, nil
	}
	current := binding.New(request.Namespace != "")
	return current, r.live.Get(ctx, request.NamespacedName, current)
}

// report writes what the Works tell into the status of the binding.
func (r *reconciler) report(ctx context.Context, request reconcile.Request, stored binding.Object, account work.Account) error {
	condition := account.FullyApplied(binding.Expected(stored.BindingSpec()), stored.GetGeneration())
	condition.LastTransitionTime = metav1.NewTime(r.now())
	if condition.Status == metav1.ConditionTrue && !r.made(stored) {
		// It is true of an earlier generation, as the stored condition says.
		condition = *cmp.Or(conditions.Get(stored.BindingStatus().Conditions, condition.Type), &condition)
	}
	reported := binding.Copy(stored)
	if !merge(reported.BindingStatus(), account.Items, condition) {
		return nil
	}
	if _, err := patch.Status(ctx, r.karmada, stored, reported); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			r.events.Failed(stored, workv1alpha2.EventReasonAggregateStatusFailed, err)
		}
		return err
	}
	r.written.wroteBinding(request, reported.GetResourceVersion())
	r.events.Recovered(stored, workv1alpha2.EventReasonAggregateStatusFailed)
	return nil
}

// merge puts items and condition into a status and reports whether that changed
// what it says.
func merge(status *workv1alpha2.ResourceBindingStatus, items []workv1alpha2.AggregatedStatusItem, condition metav1.Condition) bool {
	changed := conditions.Set(&status.Conditions, condition)
	if work.SameItems(status.AggregatedStatus, items) {
		return changed
	}
	status.AggregatedStatus = slices.Clone(items)
	return true
}
