// Package applicationfailover evicts an application from a cluster where it has been unhealthy
// for longer than its policy tolerates.
//
// Invariants:
//
//   - An annotation stores since when an application has been unhealthy. It is written when the
//     unhealthy period is first stored and when that period ends, never in between.
//   - A process does not evict an application because of a status that was reported before the
//     process started.
//   - All evictions of one pass are stored with one write.
//   - Other controllers choose new clusters and delete old copies. An annotation tells these
//     controllers in which clusters the application failed recently.
package applicationfailover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// Name and ClusterName are the names of the controllers of the two scopes in logs, metrics and
// events. They are also the producers in the eviction tasks.
const (
	Name        = workv1alpha2.EvictionProducerApplicationFailover
	ClusterName = workv1alpha2.EvictionProducerClusterApplicationFailover
)

const (
	// minUnhealthyTime is how long an application must be unhealthy before the start of the
	// unhealthy period is stored. Shorter periods are not stored, because an application is
	// unhealthy for a short time during every rollout. If the process ends, at most this much of an
	// unhealthy period is forgotten.
	minUnhealthyTime = 10 * time.Second
)

// Options configure the controllers.
type Options struct {
	// Workers is the number of bindings of each scope that are processed in parallel.
	Workers int
	// AllowGraceful allows the purge mode Gracefully.
	AllowGraceful bool
	// PreserveState preserves the state that a policy selects.
	PreserveState bool
	// Backoff is the backoff for failovers that failed.
	Backoff loop.Backoff
}

// DefaultOptions returns the options of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 3, AllowGraceful: true, Backoff: loop.DefaultBackoff()}
}

// reconciler serves the bindings of one scope.
type reconciler struct {
	options    Options
	namespaced bool
	karmada    client.Client
	rules      interpreter.Source
	events     *loop.Events
	observed   *unhealthyTracker
	now        func() time.Time
}

// Add registers the controllers of both scopes with a manager.
func Add(mgr manager.Manager, rules interpreter.Source, o Options) error {
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), loop.BindingsByTemplate); err != nil {
		return err
	}
	for _, namespaced := range []bool{true, false} {
		name := ClusterName
		if namespaced {
			name = Name
		}
		r := &reconciler{
			options: o, namespaced: namespaced, karmada: mgr.GetClient(), rules: rules,
			events:   loop.EventsFor(mgr, name, loop.EventModeChanges),
			observed: newUnhealthyTracker(), now: time.Now,
		}
		err := builder.ControllerManagedBy(mgr).Named(name).
			For(binding.New(namespaced), builder.WithPredicates(loop.OnlyMatchingBindings(hasFailover))).
			WatchesRawSource(r.newRulesSource()).
			WithOptions(loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)).
			Complete(r)
		if err != nil {
			return fmt.Errorf("setting up %s: %w", name, err)
		}
	}
	return nil
}

// hasFailover reports whether the policy of a binding configures application failover, or the
// binding still has annotations of an earlier application failover.
func hasFailover(bound binding.Object) bool {
	behavior := bound.BindingSpec().Failover
	return behavior != nil && behavior.Application != nil ||
		bound.GetAnnotations()[workv1alpha2.UnhealthySinceAnnotation] != "" || bound.GetAnnotations()[workv1alpha2.FailedInAnnotation] != ""
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bound, err := loop.GetActiveBinding(ctx, r.karmada, r.namespaced, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if bound == nil {
		r.observed.deleteBinding(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	next, err := r.processBinding(ctx, bound)
	if err != nil {
		return loop.Result(client.IgnoreNotFound(err))
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// processBinding checks the health of one application and returns the delay until the next pass. 0
// means that the next pass starts only after a change.
func (r *reconciler) processBinding(ctx context.Context, bound binding.Object) (time.Duration, error) {
	now := r.now()
	d, err := r.decide(bound, now)
	if err != nil {
		return 0, err
	}
	if _, err := patch.Object(ctx, r.karmada, bound, d.desired); err != nil {
		_ = r.recordEvents(bound, nil, err)
		return 0, err
	}
	if len(d.evicted) > 0 {
		klog.FromContext(ctx).Info("Evicting an unhealthy application", "members", strings.Join(clustersOf(d.evicted), ","))
	}
	r.observed.storeUnhealthySince(client.ObjectKeyFromObject(bound), bound.GetUID(), d.observed)
	if err := r.recordEvents(bound, d.evicted, d.evictionErr); err != nil {
		return 0, err
	}
	return delayUntil(d.nextPass, now), nil
}

// decision is the result of a pass for one application.
type decision struct {
	desired binding.Object
	// evicted contains the evictions that start. evictionErr is the error of the evictions that
	// failed.
	evicted     []failover.Eviction
	evictionErr error
	// observed contains the unhealthy periods that this process observed. nextPass is the time of
	// the next pass, or zero if no further pass is needed.
	observed failover.UnhealthySince
	nextPass time.Time
}

func (r *reconciler) decide(bound binding.Object, now time.Time) (decision, error) {
	d := decision{desired: binding.Copy(bound)}
	memory, observed := r.readMemory(bound, now)
	stored := failover.UnhealthySince{}
	if len(memory) > 0 {
		var overdue []string
		overdue, d.nextPass = memory.Overdue(observed, bound.BindingSpec().Failover.Application, now)
		d.evicted, d.evictionErr = r.evict(d.desired, bound, overdue)
		spec, status := d.desired.BindingSpec(), d.desired.BindingStatus()
		d.observed = observed.Update(spec, status, now)
		stored, d.nextPass = entriesToStore(memory.Update(spec, status, now), d.nextPass, now)
	}
	failures := failover.ReadFailures(bound, now).Add(clustersOf(d.evicted), now)
	d.nextPass = earlier(d.nextPass, failures.NextExpiry())
	return d, setAnnotations(d.desired, stored, failures)
}

// readMemory returns since when the application has been unhealthy in each cluster. known combines
// the stored times with the times that this process observed. observed contains only the latter.
// Both are nil for a binding without application failover.
func (r *reconciler) readMemory(bound binding.Object, now time.Time) (known, observed failover.UnhealthySince) {
	reference := bound.BindingSpec().Resource
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
	if !failover.HasApplicationFailover(bound, r.rules.Rules(kind).IsHealthy != nil) {
		return nil, nil
	}
	observe := func(memory failover.UnhealthySince) failover.UnhealthySince {
		return memory.Update(bound.BindingSpec(), bound.BindingStatus(), now)
	}
	observed = observe(r.observed.memoryOf(client.ObjectKeyFromObject(bound), bound.GetUID()))
	stored := failover.ParseUnhealthySince(bound.GetAnnotations()[workv1alpha2.UnhealthySinceAnnotation], now)
	return observe(stored).Merge(observed), observed
}

// evict adds eviction tasks for the clusters to the binding. It continues with the next cluster
// after an error.
func (r *reconciler) evict(desired, bound binding.Object, clusters []string) (evicted []failover.Eviction, err error) {
	var failures []error
	for _, cluster := range clusters {
		eviction, err := failover.ApplicationEviction(bound, cluster, r.options.AllowGraceful, r.options.PreserveState)
		if err != nil {
			failures = append(failures, fmt.Errorf("evicting from cluster %s: %w", cluster, err))
			continue
		}
		if failover.Evict(desired.BindingSpec(), eviction) {
			evicted = append(evicted, eviction)
		}
	}
	return evicted, errors.Join(failures...)
}

// clustersOf returns the source clusters of evictions.
func clustersOf(evictions []failover.Eviction) []string {
	clusters := make([]string, len(evictions))
	for i := range evictions {
		clusters[i] = evictions[i].From
	}
	return clusters
}

// entriesToStore returns the times that must be stored in the annotation now, and the time of the
// next pass. The next pass is at next, or earlier if another time must be stored before that.
func entriesToStore(memory failover.UnhealthySince, next, now time.Time) (failover.UnhealthySince, time.Time) {
	stored := failover.UnhealthySince{}
	for cluster, since := range memory {
		storeAt := since.Add(minUnhealthyTime)
		if !now.Before(storeAt) {
			stored[cluster] = since
			continue
		}
		next = earlier(next, storeAt)
	}
	return stored, next
}

// earlier returns the earlier of two times. The zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// delayUntil returns the delay until a time, or 0 for the zero time.
func delayUntil(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(now), time.Millisecond)
}

// setAnnotations stores the times and the failed clusters in annotations of the binding.
func setAnnotations(desired binding.Object, memory failover.UnhealthySince, failures failover.Failures) error {
	for name, text := range map[string]func() (string, error){
		workv1alpha2.UnhealthySinceAnnotation: memory.Encode, workv1alpha2.FailedInAnnotation: failures.Encode,
	} {
		value, err := text()
		if err != nil {
			return err
		}
		setAnnotation(desired, name, value)
	}
	return nil
}

// setAnnotation sets an annotation, or removes it if the value is empty.
func setAnnotation(desired binding.Object, name, value string) {
	annotations := desired.GetAnnotations()
	if annotations[name] == value {
		return
	}
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	if value == "" {
		delete(annotations, name)
	}
	desired.SetAnnotations(annotations)
}

// recordEvents records events for started evictions, and one event for each new cause of a failed
// eviction. It returns the error if a retry may help. A retry does not help if the operator
// disabled graceful eviction, so then only a change of the binding starts another pass.
func (r *reconciler) recordEvents(bound binding.Object, evicted []failover.Eviction, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	for _, object := range []client.Object{bound, binding.TemplateReference(bound)} {
		for i := range evicted {
			r.events.RecordDecision(object, workv1alpha2.EventReasonEvictionStarted, "Evicting %s", evicted[i].Describe())
		}
		switch {
		case err != nil:
			r.events.RecordFailure(object, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed, err)
		case len(evicted) > 0:
			r.events.ClearFailure(object, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed)
		}
	}
	if errors.Is(err, failover.ErrGracefulDisabled) {
		return nil
	}
	return err
}

// unhealthyTracker tracks since when this process has observed that applications are unhealthy.
type unhealthyTracker struct {
	mu      sync.Mutex
	records map[types.NamespacedName]unhealthyRecord
}

type unhealthyRecord struct {
	uid    types.UID
	memory failover.UnhealthySince
}

func newUnhealthyTracker() *unhealthyTracker {
	return &unhealthyTracker{records: map[types.NamespacedName]unhealthyRecord{}}
}

func (u *unhealthyTracker) memoryOf(key types.NamespacedName, uid types.UID) failover.UnhealthySince {
	u.mu.Lock()
	defer u.mu.Unlock()
	if record := u.records[key]; record.uid == uid {
		return record.memory
	}
	return nil
}

func (u *unhealthyTracker) storeUnhealthySince(key types.NamespacedName, uid types.UID, memory failover.UnhealthySince) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(memory) == 0 {
		delete(u.records, key)
		return
	}
	u.records[key] = unhealthyRecord{uid, memory}
}

func (u *unhealthyTracker) deleteBinding(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.records, key)
}
