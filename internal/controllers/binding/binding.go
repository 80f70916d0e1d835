// Package binding answers "does every cluster of a binding have the Work that it
// should have?": it makes, changes and removes the Works of ResourceBindings and
// ClusterResourceBindings, which are one thing here.
//
// Invariants:
//
//   - a binding that was just scheduled to n clusters costs n creates; a pass that
//     finds everything in order costs no request at all;
//   - the failure of one cluster never stops the others;
//   - a Work is deleted only when it bears the id and the name of this binding,
//     and the binding, as stored and not only as seen, gives it no reason to be;
//   - what this controller wrote is seen before it decides again, so that no Work
//     is overlooked because a watch lags.
package binding

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/domain/work"
)

// Name and ClusterName are the names of the controllers of the two scopes in
// logs, metrics and events.
const (
	Name        = "binding-controller"
	ClusterName = "cluster-resource-binding-controller"
)

// purgePoll is how long to wait for clusters that must be empty first. The end of
// a Work there ends the wait too.
const purgePoll = 5 * time.Second

// Options are what operators may tune.
type Options struct {
	// Workers and ClusterWorkers are how many bindings of each scope are worked on at
	// once.
	Workers, ClusterWorkers int
	// Writers is how many Works of one binding are written at once.
	Writers int
	// Backoff is that of a binding that failed.
	Backoff queues.Backoff
	// InjectState hands the state of an evicted workload to its successor.
	InjectState bool
	// Events selects the successes that are written as events.
	Events observe.Mode
	// Propagated says what is never propagated.
	Propagated reach.Propagated
	// Allowed is what override policies may change beyond what an object says.
	Allowed override.Allowed
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 5, ClusterWorkers: 5, Writers: 8, Backoff: queues.DefaultBackoff(),
		Propagated: reach.Propagated{APIs: reach.DefaultSkippedAPIs()},
	}
}

// reconciler serves the bindings of one scope.
type reconciler struct {
	options    Options
	namespaced bool
	karmada    client.Client
	live       client.Reader
	templates  *template.Reader
	rules      interpreter.Source
	events     *observe.Events
	written    *ledger
	failing    *failing
	abandoned  *abandoned
	synced     *prometheus.HistogramVec
}

// Add registers the controllers of both scopes with a manager. Which clusters of a
// binding have no current Work, and why, is handed to failures.
func Add(mgr manager.Manager, templates *template.Reader, rules interpreter.Source, failures Failures, o Options) error {
	if err := index(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	synced, err := newSynced(metrics.Registry)
	if err != nil {
		return err
	}
	for _, namespaced := range []bool{true, false} {
		if err := add(mgr, &reconciler{
			options: o, namespaced: namespaced, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), templates: templates, rules: rules,
			events:  observe.NewEvents(mgr.GetEventRecorderFor(nameOf(namespaced))).In(o.Events), //nolint:staticcheck // the newer recorder writes another API
			written: newLedger(mgr.GetClient(), mgr.GetAPIReader(), time.Now), failing: newFailing(failures),
			abandoned: newAbandoned(time.Now), synced: synced,
		}); err != nil {
			return err
		}
	}
	return nil
}

func add(mgr manager.Manager, r *reconciler) error {
	controllers := builder.ControllerManagedBy(mgr).Named(nameOf(r.namespaced)).
		For(binding.New(r.namespaced), builder.WithPredicates(worthALook())).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, r.onOverride()).
		Watches(&clusterv1alpha1.Cluster{}, r.onCluster()).
		Watches(&workv1alpha1.Work{}, r.onWork())
	if r.namespaced {
		controllers = controllers.Watches(&policyv1alpha1.OverridePolicy{}, r.onOverride())
	}
	err := controllers.WithOptions(queues.Options[reconcile.Request](mgr, r.options.workers(r.namespaced), r.options.Backoff)).Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", nameOf(r.namespaced), err)
	}
	return nil
}

func (o Options) workers(namespaced bool) int {
	if namespaced {
		return o.Workers
	}
	return o.ClusterWorkers
}

func nameOf(namespaced bool) string {
	if namespaced {
		return Name
	}
	return ClusterName
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bound := binding.New(r.namespaced)
	err := r.karmada.Get(ctx, request.NamespacedName, bound, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		r.written.forget(request.NamespacedName)
		r.failing.forget(request.NamespacedName)
		return r.collect(ctx, request.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the binding: %w", err)
	}
	r.abandoned.forget(request.NamespacedName)
	if seen, err := r.written.seen(ctx, request.NamespacedName); err != nil || !seen {
		return reconcile.Result{RequeueAfter: lagDelay}, err
	}
	works, err := r.worksOf(ctx, bound)
	if err != nil {
		return reconcile.Result{}, err
	}
	if bound.GetDeletionTimestamp() != nil {
		return r.release(ctx, bound, works)
	}
	return r.ensure(ctx, bound, works)
}

// ensure brings the Works of a binding to what the binding says.
func (r *reconciler) ensure(ctx context.Context, bound binding.Object, works []*workv1alpha1.Work) (reconcile.Result, error) {
	spec, done := bound.BindingSpec(), &pass{bound: bound}
	orphans := judgeable(work.Orphans(works, binding.Expected(spec), nil), bound)
	if err := r.removeOrphans(ctx, bound, orphans); err != nil {
		return r.unclean(bound, err)
	}
	if work.Inside(works, r.purged(ctx, spec)) {
		return reconcile.Result{RequeueAfter: purgePoll}, nil
	}
	works = slices.DeleteFunc(works, func(each *workv1alpha1.Work) bool { return slices.Contains(orphans, each) })
	targets := binding.Targets(spec)
	if len(targets) == 0 {
		return r.conclude(done)
	}
	if err := r.withinReach(ctx, bound); err != nil {
		done.failAll(targets, withDelivered(err, works))
		return r.conclude(done)
	}
	template, err := r.template(ctx, spec.Resource)
	if err != nil || template == nil {
		done.fail(err)
		return r.conclude(done)
	}
	if stale(template, spec.Resource) {
		return reconcile.Result{RequeueAfter: lagDelay}, nil
	}
	if refusal := reach.Marked(template); refusal != nil {
		done.failAll(targets, withDelivered(refusal, works))
		return r.conclude(done)
	}
	done.template = template
	r.syncAll(ctx, done, targets, works)
	return r.conclude(done)
}

// syncAll writes the Works of all targets and then removes those that they have
// taken the place of.
func (r *reconciler) syncAll(ctx context.Context, done *pass, targets []workv1alpha2.TargetCluster, works []*workv1alpha1.Work) {
	defer observeSync(r.synced, time.Now(), &done.failures)
	overrides, err := r.overrides(ctx, done.template)
	if err != nil {
		done.fail(err)
		return
	}
	results := r.write(ctx, batch{
		bound: done.bound, template: done.template, overrides: overrides, revise: r.revise(ctx, done.template),
		targets: targets, works: works,
	})
	names := done.count(results)
	done.fail(r.removeOrphans(ctx, done.bound, work.Orphans(works, binding.Expected(done.bound.BindingSpec()), names)))
}

// revise is the kind's rule for replicas, nil when there is none.
func (r *reconciler) revise(ctx context.Context, template *unstructured.Unstructured) revision {
	rule := r.rules.Rules(template.GroupVersionKind()).Revise
	if rule == nil {
		return nil
	}
	return func(object *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
		return rule(ctx, object, replicas)
	}
}
