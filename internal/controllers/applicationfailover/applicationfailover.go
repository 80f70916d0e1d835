// Package applicationfailover answers "has an application been unhealthy in a
// cluster for longer than its policy tolerates?": then it leaves that cluster.
//
// Invariants:
//
//   - since when an application has been unhealthy outlives the process, and is
//     written when that begins to count and when it ends, never in between;
//   - a process that starts evicts nothing for what was reported before;
//   - all clusters that it leaves in one pass are one write;
//   - where it goes, and when its old copies go, is decided by others, who are told
//     where it failed lately.
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
	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/interpreter"
)

// Name and ClusterName are the names of the controllers of the two scopes in logs,
// metrics and events, and those that tasks bear.
const (
	Name        = workv1alpha2.EvictionProducerApplicationFailover
	ClusterName = workv1alpha2.EvictionProducerClusterApplicationFailover
)

const (
	// conflictDelay is when to look again at a binding that others changed meanwhile.
	conflictDelay = 50 * time.Millisecond
	// lasting is how long an application must be unhealthy for that to be written: one
	// that rolls out is unhealthy for a moment. So much may be forgotten by an end of
	// the process.
	lasting = 10 * time.Second
)

// Options are what operators may tune.
type Options struct {
	// Workers is how many bindings of each scope are worked on at once.
	Workers int
	// Graceful offers the purge mode Gracefully.
	Graceful bool
	// PreserveState takes the state along for which a policy asks.
	PreserveState bool
	// Backoff is that of a failover that failed.
	Backoff queues.Backoff
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{Workers: 3, Graceful: true, Backoff: queues.DefaultBackoff()}
}

// reconciler serves the bindings of one scope.
type reconciler struct {
	options    Options
	namespaced bool
	karmada    client.Client
	rules      interpreter.Source
	events     *observe.Events
	recent     *recent
	now        func() time.Time
}

// Add registers the controllers of both scopes with a manager.
func Add(mgr manager.Manager, rules interpreter.Source, o Options) error {
	for _, namespaced := range []bool{true, false} {
		name := ClusterName
		if namespaced {
			name = Name
		}
		r := &reconciler{
			options: o, namespaced: namespaced, karmada: mgr.GetClient(), rules: rules,
			events: observe.NewEvents(mgr.GetEventRecorderFor(name)), //nolint:staticcheck // the newer recorder writes another API
			recent: newRecent(), now: time.Now,
		}
		err := builder.ControllerManagedBy(mgr).Named(name).
			For(binding.New(namespaced), builder.WithPredicates(bindings.While(takingPart))).
			WithOptions(queues.Options[reconcile.Request](mgr, o.Workers, o.Backoff)).
			Complete(r)
		if err != nil {
			return fmt.Errorf("setting up %s: %w", name, err)
		}
	}
	return nil
}

// takingPart tells that a binding has an application failover, or that something is
// still remembered of it.
func takingPart(bound binding.Object) bool {
	of := bound.BindingSpec().Failover
	return of != nil && of.Application != nil ||
		bound.GetAnnotations()[workv1alpha2.UnhealthySinceAnnotation] != "" || bound.GetAnnotations()[workv1alpha2.FailedInAnnotation] != ""
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bound, err := bindings.Living(ctx, r.karmada, r.namespaced, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if bound == nil {
		r.recent.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	next, err := r.work(ctx, bound)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// work looks at the health of one application, and returns when to look again; 0
// is when something changes.
func (r *reconciler) work(ctx context.Context, bound binding.Object) (time.Duration, error) {
	now := r.now()
	d, err := r.decide(bound, now)
	if err != nil {
		return 0, err
	}
	if _, err := patch.Object(ctx, r.karmada, bound, d.desired); err != nil {
		_ = r.tell(bound, nil, err)
		return 0, err
	}
	if len(d.evicted) > 0 {
		klog.FromContext(ctx).Info("Evicting an unhealthy application", "members", strings.Join(clustersOf(d.evicted), ","))
	}
	r.recent.keep(client.ObjectKeyFromObject(bound), bound.GetUID(), d.seen)
	if err := r.tell(bound, d.evicted, d.failed); err != nil {
		return 0, err
	}
	return until(d.next, now), nil
}

// decision is what becomes of one application.
type decision struct {
	desired binding.Object
	// evicted are the evictions that begin, failed why others cannot.
	evicted []failover.Eviction
	failed  error
	// seen is what this process has seen, next when to look again; zero for never.
	seen failover.Memory
	next time.Time
}

func (r *reconciler) decide(bound binding.Object, now time.Time) (decision, error) {
	d := decision{desired: binding.Copy(bound)}
	memory, seen := r.remember(bound, now)
	stored := failover.Memory{}
	if len(memory) > 0 {
		var overdue []string
		overdue, d.next = memory.Overdue(seen, bound.BindingSpec().Failover.Application, now)
		d.evicted, d.failed = r.evict(d.desired, bound, overdue)
		spec, status := d.desired.BindingSpec(), d.desired.BindingStatus()
		d.seen = seen.Observe(spec, status, now)
		stored, d.next = worthStoring(memory.Observe(spec, status, now), d.next, now)
	}
	failures := failover.FailuresOf(bound, now).With(clustersOf(d.evicted), now)
	d.next = earlier(d.next, failures.Next())
	return d, annotate(d.desired, stored, failures)
}

// remember is since when the application has been unhealthy, by all that is known and
// by what this process has seen; nothing for a binding that takes no part.
func (r *reconciler) remember(bound binding.Object, now time.Time) (known, seen failover.Memory) {
	reference := bound.BindingSpec().Resource
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
	if !failover.TakesPart(bound, r.rules.Rules(kind).Healthy != nil) {
		return nil, nil
	}
	observe := func(memory failover.Memory) failover.Memory {
		return memory.Observe(bound.BindingSpec(), bound.BindingStatus(), now)
	}
	seen = observe(r.recent.of(client.ObjectKeyFromObject(bound), bound.GetUID()))
	told := failover.ReadMemory(bound.GetAnnotations()[workv1alpha2.UnhealthySinceAnnotation], now)
	return observe(told).With(seen), seen
}

// evict takes the application out of clusters, as far as that can be done.
func (r *reconciler) evict(desired, bound binding.Object, clusters []string) (evicted []failover.Eviction, err error) {
	var failures []error
	for _, cluster := range clusters {
		eviction, err := failover.Application(bound, cluster, r.options.Graceful, r.options.PreserveState)
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

// clustersOf are the clusters that evictions lead out of.
func clustersOf(evictions []failover.Eviction) []string {
	clusters := make([]string, len(evictions))
	for i := range evictions {
		clusters[i] = evictions[i].From
	}
	return clusters
}

// worthStoring is what is remembered beyond the process, and when to look again:
// at the given time, or when more has lasted long enough.
func worthStoring(memory failover.Memory, next, now time.Time) (failover.Memory, time.Time) {
	stored := failover.Memory{}
	for cluster, since := range memory {
		lasts := since.Add(lasting)
		if !now.Before(lasts) {
			stored[cluster] = since
			continue
		}
		next = earlier(next, lasts)
	}
	return stored, next
}

// earlier is the first of two times, of which either may be never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// until is how long it takes until a time; 0 for never.
func until(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(now), time.Millisecond)
}

// annotate puts what is to be remembered into the binding.
func annotate(desired binding.Object, memory failover.Memory, failures failover.Failures) error {
	for name, text := range map[string]func() (string, error){
		workv1alpha2.UnhealthySinceAnnotation: memory.Text, workv1alpha2.FailedInAnnotation: failures.Text,
	} {
		value, err := text()
		if err != nil {
			return err
		}
		note(desired, name, value)
	}
	return nil
}

// note sets an annotation; an empty one goes.
func note(desired binding.Object, name, value string) {
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

// tell says that evictions begin, or why one failed, once until the cause changes, and
// returns the error if trying again may help. What the operator has switched off is
// looked at again when something changes.
func (r *reconciler) tell(bound binding.Object, evicted []failover.Eviction, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	for _, object := range []client.Object{bound, binding.Template(bound)} {
		for i := range evicted {
			r.events.Decided(object, workv1alpha2.EventReasonEvictionStarted, "Evicting %s", evicted[i].Describe())
		}
		switch {
		case err != nil:
			r.events.Failed(object, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed, err)
		case len(evicted) > 0:
			r.events.Recovered(object, workv1alpha2.EventReasonEvictWorkloadFromClusterFailed)
		}
	}
	if errors.Is(err, failover.ErrGracefulOff) {
		return nil
	}
	return err
}

// recent is what this process has seen of unhealthy applications, stored or not.
type recent struct {
	mu    sync.Mutex
	known map[types.NamespacedName]seen
}

type seen struct {
	uid    types.UID
	memory failover.Memory
}

func newRecent() *recent { return &recent{known: map[types.NamespacedName]seen{}} }

func (n *recent) of(key types.NamespacedName, uid types.UID) failover.Memory {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.known[key]; known.uid == uid {
		return known.memory
	}
	return nil
}

func (n *recent) keep(key types.NamespacedName, uid types.UID, memory failover.Memory) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(memory) == 0 {
		delete(n.known, key)
		return
	}
	n.known[key] = seen{uid, memory}
}

func (n *recent) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, key)
}
