// Package dependencies propagates the dependencies of a template to the clusters of the template.
// If the policy sets propagateDeps, it attaches bindings to the binding of the template: one
// binding for each ConfigMap, Secret or other object to which the template refers.
//
// The domain package dependency makes the decisions. This package reads objects, calls that
// package, and writes the result. Invariants:
//
//   - A dependent has the finalizer of this controller before any binding is attached to it, so
//     that no binding stays attached to a deleted dependent.
//   - A reconcile without a difference writes nothing.
//   - While a dependent has an outdated copy in a cluster, because the dispatching is suspended or the
//     copy is being evicted, the bindings to which this copy may refer stay attached there.
//   - A reference is in the index before the referenced object is read. If that object is created
//     later, in any namespace, its event therefore finds the dependents that wait for it.
//   - A binding is deleted only if its last dependent is detached and no policy places it.
//   - Watches of kinds are started outside of reconciles, and reconciles do not wait for these
//     watches.
package dependencies

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/loop"
)

// Name is the name of the controller in logs and events.
const Name = "dependencies-distributor"

// reconcileTimeout limits the duration of one reconcile, so that a webhook that does not respond
// does not block a worker for longer.
const reconcileTimeout = time.Minute

// Options are the settings that operators may change.
type Options struct {
	// Workers is the number of dependents that are reconciled in parallel.
	Workers int
	// Backoff is the backoff for dependents that failed.
	Backoff loop.Backoff
	// Events selects the successes that are recorded as events.
	Events loop.EventMode
	// Propagated selects the objects that are never propagated.
	Propagated tenancy.PropagationRules
}

// DefaultOptions returns the defaults of a production control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 2, Backoff: loop.DefaultBackoff(),
		Propagated: tenancy.PropagationRules{APIs: tenancy.DefaultSkippedAPIs()},
	}
}

type reconciler struct {
	karmada        client.Client
	karmadaReader  client.Reader
	templateReader *template.Reader
	rules          interpreter.Source
	events         *loop.Events
	referenceIndex *referenceIndex
	watches        *dependencyWatches
	conflicts      *conflicts
	// propagated selects the objects that are never propagated.
	propagated tenancy.PropagationRules
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, watchManager *watches.Manager, templates *template.Reader, rules interpreter.Source, o Options) error {
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), loop.BindingsByDependent, loop.BindingsByTemplate); err != nil {
		return err
	}
	r := &reconciler{
		karmada: mgr.GetClient(), karmadaReader: mgr.GetAPIReader(), templateReader: templates, rules: rules,
		events:         loop.EventsFor(mgr, Name, o.Events),
		referenceIndex: newReferenceIndex(), conflicts: newConflicts(), propagated: o.Propagated,
	}
	r.watches = newDependencyWatches(watchManager, r.referenceIndex, mgr.GetLogger().WithName(Name))
	options := loop.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)
	options.ReconciliationTimeout = reconcileTimeout
	err := builder.ControllerManagedBy(mgr).Named(Name).
		Watches(&workv1alpha2.ResourceBinding{}, r.newBindingHandler()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, r.newBindingHandler()).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			r.watches.setQueue(q)
			return nil
		})).
		WatchesRawSource(r.newRulesSource()).
		WithOptions(options).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return mgr.Add(manager.RunnableFunc(r.watches.run))
}

// Reconcile implements reconcile.Reconciler. A request names a dependent. Dependents always have a
// namespace.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	dependent := &workv1alpha2.ResourceBinding{}
	err := r.karmada.Get(ctx, request.NamespacedName, dependent, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return resultFor(r.detachDeleted(ctx, request.NamespacedName))
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading binding %s: %w", request.NamespacedName, err)
	}
	if dependent.DeletionTimestamp != nil {
		return r.finishReconcile(dependent, r.finalize(ctx, dependent))
	}
	if !dependent.Spec.PropagateDeps {
		current, err := r.reportInterpretation(ctx, dependent, nil)
		if err == nil {
			err = r.finalize(ctx, current)
		}
		return r.finishReconcile(dependent, err)
	}
	return r.finishReconcile(dependent, r.distribute(ctx, dependent))
}
