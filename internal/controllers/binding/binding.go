// Package binding creates, updates and deletes the Works of ResourceBindings and
// ClusterResourceBindings with the same code.
//
// Invariants:
//
//   - A binding that was just scheduled to n clusters costs n create requests. A reconcile without
//     a difference sends no request.
//   - The failure of one cluster never stops the work for other clusters.
//   - A Work is deleted only if it has the ID and the name of this binding, and if the binding does
//     not need the Work according to both the cache and the API server.
//   - While the dispatching to a cluster is suspended, the controller deletes no Work there that was
//     delivered.
//   - The Works do not show everything about their rendering, for example why a cluster has no
//     Work. The controller records these facts in annotations of the binding, so that controllers
//     in other processes can read them.
//   - The controller makes a new decision only after the cache shows its own writes, so that it
//     misses no Work because of a late watch event.
package binding

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// Name and ClusterName are the names of the controllers of the two scopes in
// logs, metrics and events.
const (
	Name        = "binding-controller"
	ClusterName = "cluster-resource-binding-controller"
)

// purgePollInterval is the requeue delay of a binding whose template must first be removed from
// some clusters before other clusters get it. The deletion of a Work in one of these clusters also
// queues the binding.
const purgePollInterval = 5 * time.Second

// Options are the settings that operators may change.
type Options struct {
	// Workers and ClusterWorkers are the numbers of bindings of each scope that are reconciled
	// in parallel.
	Workers, ClusterWorkers int
	// Writers is the number of Works of one binding that are written in parallel.
	Writers int
	// Backoff is the backoff for bindings that failed.
	Backoff loop.Backoff
	// InjectState passes the state of an evicted workload to its replacement.
	InjectState bool
	// Events selects the successes that are recorded as events.
	Events loop.EventMode
	// Propagated selects the objects that are never propagated.
	Propagated tenancy.PropagationRules
	// Allowed is what override policies may change beyond the fields of an object.
	Allowed override.Options
}

// DefaultOptions returns the defaults of a production control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 5, ClusterWorkers: 5, Writers: 8, Backoff: loop.DefaultBackoff(),
		Propagated: tenancy.PropagationRules{APIs: tenancy.DefaultSkippedAPIs()},
	}
}

// reconciler reconciles the bindings of one scope.
type reconciler struct {
	options        Options
	namespaced     bool
	karmada        client.Client
	karmadaReader  client.Reader
	templateReader *template.Reader
	rules          interpreter.Source
	events         *loop.Events
	writes         *loop.Writes[types.NamespacedName]
	orphans        *orphanTracker
	syncDuration   *prometheus.HistogramVec
}

// Add registers the controllers of both scopes with a manager.
func Add(mgr manager.Manager, templates *template.Reader, rules interpreter.Source, o Options) error {
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), indexes()...); err != nil {
		return err
	}
	syncDuration, err := newSyncDuration(metrics.Registry)
	if err != nil {
		return err
	}
	for _, namespaced := range []bool{true, false} {
		if err := addController(mgr, &reconciler{
			options: o, namespaced: namespaced, karmada: mgr.GetClient(), karmadaReader: mgr.GetAPIReader(), templateReader: templates, rules: rules,
			events:  loop.EventsFor(mgr, controllerName(namespaced), o.Events),
			writes:  loop.NewWrites[types.NamespacedName](time.Now),
			orphans: newOrphanTracker(time.Now), syncDuration: syncDuration,
		}); err != nil {
			return err
		}
	}
	return nil
}

func addController(mgr manager.Manager, r *reconciler) error {
	controllers := builder.ControllerManagedBy(mgr).Named(controllerName(r.namespaced)).
		For(binding.New(r.namespaced), builder.WithPredicates(onlyRelevantUpdates())).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, r.newOverrideHandler()).
		Watches(&clusterv1alpha1.Cluster{}, r.newClusterHandler()).
		Watches(&workv1alpha1.Work{}, r.newWorkHandler()).
		WatchesRawSource(r.newRulesSource())
	if r.namespaced {
		controllers = controllers.Watches(&policyv1alpha1.OverridePolicy{}, r.newOverrideHandler())
	}
	err := controllers.WithOptions(loop.ControllerOptions[reconcile.Request](mgr, r.options.workers(r.namespaced),
		r.options.Backoff)).Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", controllerName(r.namespaced), err)
	}
	return nil
}

func (o Options) workers(namespaced bool) int {
	if namespaced {
		return o.Workers
	}
	return o.ClusterWorkers
}

func controllerName(namespaced bool) string {
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
		r.writes.Forget(request.NamespacedName)
		return r.collectOrphans(ctx, request.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the binding: %w", err)
	}
	r.orphans.delete(request.NamespacedName)
	if visible, err := r.writes.AreVisible(ctx, request.NamespacedName, r.karmada, r.karmadaReader); err != nil {
		return reconcile.Result{}, err
	} else if !visible {
		return loop.StaleResult(), nil
	}
	works, err := r.worksOf(ctx, bound)
	if err != nil {
		return reconcile.Result{}, err
	}
	if bound, err = r.reportKeptWorks(ctx, bound, works); err != nil {
		return loop.Result(err)
	}
	if bound.GetDeletionTimestamp() != nil {
		return r.finalize(ctx, bound, works)
	}
	return r.ensure(ctx, bound, works)
}

// ensure updates the Works of a binding to match the binding.
func (r *reconciler) ensure(ctx context.Context, bound binding.Object, works []*workv1alpha1.Work) (reconcile.Result, error) {
	spec, outcome := bound.BindingSpec(), &syncOutcome{bound: bound}
	orphans := withoutEarlierWorks(work.OrphanWorks(works, binding.ExpectedClusters(spec), nil), bound)
	if err := r.deleteOrphans(ctx, bound, orphans); err != nil {
		return r.recordCleanupFailure(bound, err)
	}
	if work.HasWorkIn(works, r.clustersToPurge(ctx, spec)) {
		return reconcile.Result{RequeueAfter: purgePollInterval}, nil
	}
	works = slices.DeleteFunc(works, func(each *workv1alpha1.Work) bool { return slices.Contains(orphans, each) })
	targets := binding.TargetClusters(spec)
	if len(targets) == 0 {
		outcome.isDecided = true
		return r.finishReconcile(ctx, outcome)
	}
	if err := r.verifyReference(ctx, bound); err != nil {
		outcome.addFailureForAll(targets, withDeliveredHint(err, works))
		return r.finishReconcile(ctx, outcome)
	}
	template, err := r.readTemplate(ctx, spec.Resource)
	if err != nil || template == nil {
		outcome.addFailure(err)
		outcome.isDecided = err == nil // without a template there is nothing to render
		return r.finishReconcile(ctx, outcome)
	}
	if isTemplateStale(template, spec.Resource) {
		return loop.StaleResult(), nil
	}
	if rejection := tenancy.CheckSystemLabel(template); rejection != nil {
		outcome.addFailureForAll(targets, withDeliveredHint(rejection, works))
		return r.finishReconcile(ctx, outcome)
	}
	outcome.template = template
	if r.holdsWorks(bound, template, works) {
		return r.finishReconcile(ctx, outcome)
	}
	r.syncAll(ctx, outcome, targets, works)
	return r.finishReconcile(ctx, outcome)
}

// syncAll writes the Works of all targets and then deletes the Works that they replace.
func (r *reconciler) syncAll(ctx context.Context, outcome *syncOutcome, targets []workv1alpha2.TargetCluster, works []*workv1alpha1.Work) {
	defer recordSyncDuration(r.syncDuration, time.Now(), &outcome.failures)
	overrides, err := r.overridePolicies(ctx, outcome.template)
	if err != nil {
		outcome.addFailure(err)
		return
	}
	keepsContent, err := policy.LacksTemplateState(outcome.bound, outcome.template)
	if err != nil {
		outcome.addFailure(err)
		return
	}
	template := outcome.template
	if keepsContent {
		template = work.RecordedTemplate(template, works)
	}
	results := r.writeWorks(ctx, batch{
		bound: outcome.bound, template: template, overrides: overrides, revise: r.revise(ctx, outcome.template),
		targets: targets, works: works, keepsContent: keepsContent,
	})
	names := outcome.addResults(results)
	outcome.addFailure(r.deleteOrphans(ctx, outcome.bound,
		work.OrphanWorks(works, binding.ExpectedClusters(outcome.bound.BindingSpec()), names)))
}

// holdsWorks reports whether the Works stay as they are until the scheduler assigns replicas: the
// number 0 of a cluster means unknown then, and must not stop what runs there. The next update of
// the binding queues it again.
func (r *reconciler) holdsWorks(bound binding.Object, template *unstructured.Unstructured, works []*workv1alpha1.Work) bool {
	return len(withoutTerminating(works)) > 0 && binding.AwaitsReplicas(bound.BindingSpec()) &&
		r.rules.Rules(template.GroupVersionKind()).ReviseReplicas != nil
}

// revise returns the function that sets the replicas of objects of this kind, or nil if the kind
// has no rule for replicas.
func (r *reconciler) revise(ctx context.Context, template *unstructured.Unstructured) reviseFunc {
	rule := r.rules.Rules(template.GroupVersionKind()).ReviseReplicas
	if rule == nil {
		return nil
	}
	return func(object *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
		return rule(ctx, object, replicas)
	}
}
