// Package bindingstatus collects the statuses of the Works of a binding in the status of the
// binding, and aggregates them in the status of the template.
//
// The bindings of both scopes share the code. Invariants:
//
//   - A burst of status reports results in one write of the binding and one write of the template.
//   - Every reconcile computes both statuses from stored objects and writes only differences, so
//     that the next reconcile repairs a lost or reverted write.
//   - A status is not computed from a template or binding that is older than the last write of this
//     process, nor from a template that is older than the one from which the binding was made.
//   - The status is written only to the object for which the binding was made. The UID identifies
//     this object.
package bindingstatus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name is the name of the controller in flags, logs and events.
const Name = "resource-binding-status-controller"

const (
	// reconcileTimeout limits the duration of one reconcile. A kind that cannot be read, or a
	// webhook that does not respond, blocks a worker for at most this time.
	reconcileTimeout = time.Minute
)

// Options are the settings that operators may change.
type Options struct {
	// Workers is the number of bindings that are reconciled in parallel.
	Workers int
	// Backoff is the backoff for bindings that failed.
	Backoff loop.Backoff
	// Pacing decides how long a binding waits for further reports of its Works.
	Pacing loop.PacingPolicy
	// Events selects the successes that are recorded as events.
	Events loop.EventMode
	// StatusBytes is the maximum size, in bytes, of the status of an object in a member that is
	// collected. 0 means work.MaxStatusBytes.
	StatusBytes int
}

// DefaultOptions returns the defaults of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 5, Backoff: loop.DefaultBackoff(), Pacing: loop.DefaultPacingPolicy()}
}

type reconciler struct {
	karmada        client.Client
	karmadaReader  client.Reader
	templateReader *template.Reader
	rules          interpreter.Source
	events         *loop.Events
	writes         *loop.Writes[reconcile.Request]
	pacing         loop.PacingPolicy
	// progress delays the writes for bindings in a rollout, so that not every step of a rollout in
	// many clusters causes a write.
	progress *loop.Pacer[reconcile.Request]
	// lag delays the writes for bindings whose members do not yet have the newest state of the
	// Works.
	lag *loop.Pacer[reconcile.Request]
	// background spreads the passes that only mark a status as old, because they are not urgent and
	// thousands of bindings may be affected when a cluster becomes unready.
	background         *loop.Pacer[reconcile.Request]
	kindsWithoutStatus *kindsWithoutStatus
	now                func() time.Time
	// statusBytes is the value of Options.StatusBytes.
	statusBytes int
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, templates *template.Reader, rules interpreter.Source, o Options) error {
	r := &reconciler{
		karmada: mgr.GetClient(), karmadaReader: mgr.GetAPIReader(), templateReader: templates, rules: rules,
		events: loop.EventsFor(mgr, Name, o.Events),
		writes: loop.NewWrites[reconcile.Request](time.Now), pacing: o.Pacing, progress: newProgressPacer(o.Pacing),
		kindsWithoutStatus: newKindsWithoutStatus(), now: time.Now,
		lag: newProgressPacer(o.Pacing), background: newBackgroundPacer(o.Pacing), statusBytes: o.StatusBytes,
	}
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), loop.WorksByBindingID, loop.BindingsByTemplate); err != nil {
		return err
	}
	reportPacer := loop.NewPacer[reconcile.Request](o.Pacing, 0)
	window := func() time.Duration { return reportPacer.CollectDelay(o.Pacing.Aggregate, time.Now()) }
	bindings, works := newBindingHandler(window, o.Pacing.Settle), newWorkHandler(window, o.Pacing.Settle)
	options := loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)
	options.ReconciliationTimeout = reconcileTimeout
	return builder.ControllerManagedBy(mgr).Named(Name).
		Watches(&workv1alpha2.ResourceBinding{}, bindings).
		Watches(&workv1alpha2.ClusterResourceBinding{}, bindings).
		Watches(&workv1alpha1.Work{}, works).
		Watches(&clusterv1alpha1.Cluster{}, r.newClusterHandler()).
		WatchesRawSource(r.newRulesSource(true)).
		WatchesRawSource(r.newRulesSource(false)).
		WithOptions(options).
		Complete(r)
}

func newProgressPacer(policy loop.PacingPolicy) *loop.Pacer[reconcile.Request] {
	return loop.NewPacer[reconcile.Request](policy, policy.BindingProgressPerSecond)
}

func newBackgroundPacer(policy loop.PacingPolicy) *loop.Pacer[reconcile.Request] {
	return loop.NewPacer[reconcile.Request](policy, policy.BackgroundPerSecond)
}

// Reconcile implements reconcile.Reconciler. A request without a namespace is for a
// ClusterResourceBinding.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.background.EndWait(request)
	stored, err := r.readBinding(ctx, request)
	if apierrors.IsNotFound(err) {
		r.writes.Forget(request)
		r.progress.EndWait(request)
		r.lag.EndWait(request)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading binding %q: %w", request, err)
	}
	if stored.GetDeletionTimestamp() != nil || binding.PermanentID(stored) == "" {
		return reconcile.Result{}, nil
	}
	works, err := loop.ListWorksOfBinding(ctx, r.karmada, stored)
	if err != nil {
		return reconcile.Result{}, err
	}
	rendering := work.RenderingOf(stored)
	aggregation := work.Aggregate(works, stored.BindingSpec().Resource, r.clusterStates(ctx, stored, rendering))
	isRendered := rendering.IsComplete(works)
	if wait := r.reportDelay(request, stored, aggregation, isRendered); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if stored, err = r.writeBindingStatus(ctx, request, stored, aggregation, isRendered); err != nil || stored == nil {
		return loop.Result(err)
	}
	r.events.RecordSuccess(stored, workv1alpha2.EventReasonAggregateStatusSucceed, "Aggregated the status of %d clusters",
		len(aggregation.Items))
	r.recordUnhealthyEvents(stored, aggregation.Items)
	err = r.aggregateTemplateStatus(ctx, request, stored, aggregation.Items)
	return loop.Result(r.reportAggregation(ctx, request, stored, err))
}

// reportAggregation reports in a condition of the binding whether the status of the template is
// aggregated. Errors that are not due to the aggregated status are not reported there, because the
// next attempt can succeed. It returns the error of interpreters.Report.
func (r *reconciler) reportAggregation(ctx context.Context, request reconcile.Request, stored binding.Object, err error) error {
	if err != nil && !errors.As(err, new(*aggregationError)) {
		return err
	}
	reported, err := interpreters.Report(ctx, r.karmada, stored, workv1alpha2.StatusAggregated, err, r.now())
	if reported != stored {
		r.writes.Record(request, reported)
	}
	return err
}

// reportDelay returns how long to delay the write of the status of a binding because its clusters
// are expected to report again soon. isRendered is true if all Works are rendered from the current
// spec.
func (r *reconciler) reportDelay(request reconcile.Request, stored binding.Object, aggregation work.Aggregation,
	isRendered bool) time.Duration {
	now, expected := r.now(), binding.ExpectedClusters(stored.BindingSpec())
	if isRendered && isRolloutInProgress(expected, aggregation.Items) {
		return r.progress.TurnDelay(request, now, r.pacing.Progress, now)
	}
	r.progress.EndWait(request)
	if !isRendered || aggregation.HasPendingApply(expected) {
		return r.lag.TurnDelay(request, now, r.pacing.Lag, now)
	}
	r.lag.EndWait(request)
	return 0
}

// isRolloutInProgress reports whether the statuses of the clusters are expected to change without a
// new write by Karmada. This is true while an expected cluster has not reported, has the manifest
// but is not healthy yet, is in a rolling update, or has an older template than another cluster. A
// cluster with an apply error has reported.
func isRolloutInProgress(expected sets.Set[string], items []workv1alpha2.AggregatedStatusItem) bool {
	reported, template := 0, int64(0)
	for i := range items {
		item := &items[i]
		if !expected.Has(item.ClusterName) {
			continue
		}
		reported++
		if !item.Applied {
			if item.AppliedMessage == "" {
				return true
			}
			continue
		}
		progress := work.ParseProgress(item.Status)
		if item.Health != workv1alpha2.ResourceHealthy || !progress.IsStable {
			return true
		}
		if template != 0 && progress.TemplateGeneration != 0 && progress.TemplateGeneration != template {
			return true
		}
		template = max(template, progress.TemplateGeneration)
	}
	return reported < expected.Len()
}

// readBinding returns the stored binding. The binding must not be modified. It is read from the API
// server only while the cache does not show the last write of this process.
func (r *reconciler) readBinding(ctx context.Context, request reconcile.Request) (binding.Object, error) {
	stored := binding.New(request.Namespace != "")
	if err := r.karmada.Get(ctx, request.NamespacedName, stored, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	if !r.writes.IsStale(request, stored) {
		return stored, nil
	}
	current := binding.New(request.Namespace != "")
	return current, r.karmadaReader.Get(ctx, request.NamespacedName, current)
}

// writeBindingStatus writes the collected statuses of the Works to the status of the binding. It
// returns the current binding, or nil if the binding was deleted.
func (r *reconciler) writeBindingStatus(ctx context.Context, request reconcile.Request, stored binding.Object, aggregation work.Aggregation,
	isRendered bool) (binding.Object, error) {
	condition := aggregation.FullyAppliedCondition(binding.ExpectedClusters(stored.BindingSpec()), stored.GetGeneration())
	condition.LastTransitionTime = metav1.NewTime(r.now())
	current := []metav1.Condition{condition}
	if condition.Status == metav1.ConditionTrue && !isRendered {
		// The Works are not yet rendered from the current spec, so the condition would be true only
		// for an earlier generation. It is not written, because the stored condition already shows
		// that generation.
		current = nil
	}
	reported := binding.Copy(stored)
	if !mergeStatus(reported.BindingStatus(), aggregation.Items, current...) {
		return stored, nil
	}
	// This write also reports the success of the scheduler, which saves a write of the scheduler.
	binding.ReportScheduled(reported, metav1.NewTime(r.now()))
	if _, err := patch.Status(ctx, r.karmada, stored, reported); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if !apierrors.IsConflict(err) {
			r.events.RecordFailure(stored, workv1alpha2.EventReasonAggregateStatusFailed, err)
		}
		return nil, err
	}
	r.writes.Record(request, reported)
	r.events.ClearFailure(stored, workv1alpha2.EventReasonAggregateStatusFailed)
	return reported, nil
}

// mergeStatus sets the items and conditions of a status and reports whether the content of the
// status changed.
func mergeStatus(status *workv1alpha2.ResourceBindingStatus, items []workv1alpha2.AggregatedStatusItem, current ...metav1.Condition) bool {
	changed := false
	for _, condition := range current {
		changed = conditions.Set(&status.Conditions, condition) || changed
	}
	if work.EqualStatusItems(status.AggregatedStatus, items) {
		return changed
	}
	status.AggregatedStatus = slices.Clone(items)
	return true
}
