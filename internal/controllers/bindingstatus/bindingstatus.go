// Package bindingstatus answers "what is the status of a template in its clusters?". It
// collects the statuses of the Works of a binding in the status of the binding, and aggregates
// them in the status of the template.
//
// Both scopes of bindings share the code. Invariants:
//
//   - a burst of status reports results in one write of the binding and one of the template;
//   - every reconcile computes both statuses from stored objects and writes only differences,
//     so the next reconcile repairs a lost or reverted write;
//   - no status is computed from a template or binding that is older than this process's last
//     write, or than the template from which the binding was made;
//   - the status is written only to the object for which the binding was made, identified by
//     its UID.
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
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/telemetry"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
)

// Name is the name of the controller in flags, logs and events.
const Name = "resource-binding-status-controller"

const (
	// conflictRetryDelay is the time after a write conflict in which the newer object is
	// expected to reach the cache.
	conflictRetryDelay = 20 * time.Millisecond
	// unrenderedRetryDelay is the requeue delay of a binding whose Works are not rendered from
	// its current generation: the binding controller is busy, or waits.
	unrenderedRetryDelay = 5 * time.Second
	// reconcileTimeout limits one reconcile. A kind that cannot be read, or a webhook that
	// does not answer, blocks a worker no longer than this.
	reconcileTimeout = time.Minute
)

// Options are the settings that operators may change.
type Options struct {
	// Workers is the number of bindings that are reconciled in parallel.
	Workers int
	// Backoff is the backoff of a binding that failed.
	Backoff queues.Backoff
	// DebounceWindow is how long status reports for a binding are collected before they are
	// written.
	DebounceWindow time.Duration
	// SettleDelay is how long a changed binding waits for the reports of its Works. It is also
	// the minimum pause of a binding in a rollout that has no share of the write budget yet.
	SettleDelay time.Duration
	// Events selects the successes that are recorded as events.
	Events telemetry.Mode
	// StatusBytes is the maximum size in bytes of a member's status that is reflected; 0 means
	// work.MaxStatusBytes.
	StatusBytes int
}

// DefaultOptions returns the defaults of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: queues.DefaultBackoff(), DebounceWindow: 60 * time.Millisecond, SettleDelay: time.Second}
}

type reconciler struct {
	karmada        client.Client
	karmadaReader  client.Reader
	templateReader *template.Reader
	rules          interpreter.Source
	renderings     Renderings
	events         *telemetry.Events
	writes         *writeTracker
	progress       *progressThrottle
	// lagThrottle delays bindings whose members do not have the newest state of the Works yet.
	lag                *progressThrottle
	background         *backgroundSchedule
	kindsWithoutStatus *kindsWithoutStatus
	now                func() time.Time
	// statusBytes is Options.StatusBytes.
	statusBytes int
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, templates *template.Reader, rules interpreter.Source, renderings Renderings, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(), karmadaReader: mgr.GetAPIReader(), templateReader: templates, rules: rules, renderings: renderings,
		events: telemetry.NewEvents(mgr.GetEventRecorderFor(Name)).WithMode(o.Events), //nolint:staticcheck // the newer recorder writes another API
		writes: newWriteTracker(), progress: newProgressThrottle(progressDelay, o.SettleDelay), kindsWithoutStatus: newKindsWithoutStatus(), now: time.Now,
		lag: newProgressThrottle(lagDelay, o.SettleDelay), background: newBackgroundSchedule(backgroundInterval), statusBytes: o.StatusBytes,
	}
	if err := errors.Join(indexWorks(mgr.GetFieldIndexer()), indexBindings(mgr.GetFieldIndexer())); err != nil {
		return err
	}
	bindings, works := onBinding(o.DebounceWindow, o.SettleDelay), onWork(o.DebounceWindow, o.SettleDelay)
	options := queues.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)
	options.ReconciliationTimeout = reconcileTimeout
	return builder.ControllerManagedBy(mgr).Named(Name).
		Watches(&workv1alpha2.ResourceBinding{}, bindings).
		Watches(&workv1alpha2.ClusterResourceBinding{}, bindings).
		Watches(&workv1alpha1.Work{}, works).
		Watches(&clusterv1alpha1.Cluster{}, r.onCluster()).
		WatchesRawSource(r.onRendering(o.DebounceWindow)).
		WithOptions(options).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. A request without a namespace is for a
// ClusterResourceBinding.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.background.release(request)
	stored, err := r.readBinding(ctx, request)
	if apierrors.IsNotFound(err) {
		r.writes.delete(request)
		r.progress.stop(request)
		r.lag.stop(request)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading binding %q: %w", request, err)
	}
	if stored.GetDeletionTimestamp() != nil || binding.PermanentID(stored) == "" {
		return reconcile.Result{}, nil
	}
	works, err := r.listWorks(ctx, stored)
	if err != nil {
		return reconcile.Result{}, err
	}
	account := work.Aggregate(works, stored.BindingSpec().Resource, r.clusterStates(ctx, stored))
	if wait := r.reportDelay(request, stored, account); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := r.writeBindingStatus(ctx, request, stored, account); err != nil {
		return requeueOnConflict(err)
	}
	r.events.RecordSuccess(stored, workv1alpha2.EventReasonAggregateStatusSucceed, "Aggregated the status of %d clusters", len(account.Items))
	r.recordUnhealthyEvents(stored, account.Items)
	result, err := requeueOnConflict(r.aggregateTemplateStatus(ctx, request, stored, account.Items))
	if err == nil && result.IsZero() && !r.isRendered(stored) {
		// There is no notification when the Works are found to be up to date already.
		result.RequeueAfter = unrenderedRetryDelay
	}
	return result, err
}

// reportDelay returns how long the report of a binding is delayed because its clusters are
// expected to report again.
func (r *reconciler) reportDelay(request reconcile.Request, stored binding.Object, account work.Aggregation) time.Duration {
	expected, rendered := binding.ExpectedClusters(stored.BindingSpec()), r.isRendered(stored)
	if rendered && isRolloutInProgress(expected, account.Items) {
		return r.progress.remainingDelay(request, r.now())
	}
	r.progress.stop(request)
	if !rendered || account.HasPendingApply(expected) {
		return r.lag.remainingDelay(request, r.now())
	}
	r.lag.stop(request)
	return 0
}

// requeueOnConflict converts an error to a result for the queue. A write conflict is retried
// without a log line, with the newer object.
func requeueOnConflict(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetryDelay}, nil
	}
	return reconcile.Result{}, err
}

// readBinding returns the stored binding, which must not be modified. It reads from the API
// server only while the cache does not show this process's last write.
func (r *reconciler) readBinding(ctx context.Context, request reconcile.Request) (binding.Object, error) {
	stored := binding.New(request.Namespace != "")
	if err := r.karmada.Get(ctx, request.NamespacedName, stored, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	if !isOlder(stored.GetResourceVersion(), r.writes.lastVersions(request).binding) {
		return stored, nil
	}
	current := binding.New(request.Namespace != "")
	return current, r.karmadaReader.Get(ctx, request.NamespacedName, current)
}

// writeBindingStatus writes the statuses of the Works to the status of the binding.
func (r *reconciler) writeBindingStatus(ctx context.Context, request reconcile.Request, stored binding.Object, account work.Aggregation) error {
	condition := account.FullyAppliedCondition(binding.ExpectedClusters(stored.BindingSpec()), stored.GetGeneration())
	condition.LastTransitionTime = metav1.NewTime(r.now())
	if condition.Status == metav1.ConditionTrue && !r.isRendered(stored) {
		// The condition holds for an earlier generation only, as the stored condition shows.
		condition = *cmp.Or(conditions.Get(stored.BindingStatus().Conditions, condition.Type), &condition)
	}
	reported := binding.Copy(stored)
	if !mergeStatus(reported.BindingStatus(), account.Items, condition) {
		return nil
	}
	if _, err := patch.Status(ctx, r.karmada, stored, reported); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			r.events.RecordFailure(stored, workv1alpha2.EventReasonAggregateStatusFailed, err)
		}
		return err
	}
	r.writes.recordBindingWrite(request, reported.GetResourceVersion())
	r.events.ClearFailure(stored, workv1alpha2.EventReasonAggregateStatusFailed)
	return nil
}

// mergeStatus sets items and condition in a status and reports whether its content changed.
func mergeStatus(status *workv1alpha2.ResourceBindingStatus, items []workv1alpha2.AggregatedStatusItem, condition metav1.Condition) bool {
	changed := conditions.Set(&status.Conditions, condition)
	if work.EqualStatusItems(status.AggregatedStatus, items) {
		return changed
	}
	status.AggregatedStatus = slices.Clone(items)
	return true
}
