// Package dependencies answers "do the dependencies of a template run in the same clusters as
// the template?". It attaches bindings to the binding of a template: one for each ConfigMap,
// Secret or other object that the template refers to. It does so when the policy sets
// propagateDeps.
//
// The dependency package decides. This package reads, calls it, and writes. Invariants:
//
//   - a dependent has our finalizer before any binding is attached to it, so that no binding
//     stays attached to a deleted dependent;
//   - a reconcile without a difference writes nothing;
//   - a reference is in the index before its object is read: an object that is created later,
//     in any namespace, finds the dependents that wait for it;
//   - a binding is deleted only when its last dependent is detached and no policy places it;
//   - watches of kinds are started outside of reconciles, which do not depend on them.
package dependencies

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/telemetry"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/tenancy"
)

// Name is the name of the controller in logs and events.
const Name = "dependencies-distributor"

// reconcileTimeout limits one reconcile, so that a webhook that does not answer blocks a
// worker no longer than this.
const reconcileTimeout = time.Minute

// Options are the settings that operators may change.
type Options struct {
	// Workers is the number of dependents that are reconciled in parallel.
	Workers int
	// Backoff is the backoff of a dependent that failed.
	Backoff queues.Backoff
	// WatchInterval is how often the controller checks that the kinds of dependencies are
	// watched. A kind may be served later, and another controller may end a shared watch.
	WatchInterval time.Duration
	// Events selects the successes that are recorded as events.
	Events telemetry.Mode
	// Propagated selects the objects that are never propagated.
	Propagated tenancy.PropagationRules
}

// DefaultOptions returns the defaults of a production control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 2, Backoff: queues.DefaultBackoff(), WatchInterval: 5 * time.Second,
		Propagated: tenancy.PropagationRules{APIs: tenancy.DefaultSkippedAPIs()},
	}
}

type reconciler struct {
	karmada        client.Client
	karmadaReader  client.Reader
	templateReader *template.Reader
	rules          interpreter.Source
	events         *telemetry.Events
	referenceIndex *referenceIndex
	watches        *watches
	conflicts      *conflicts
	// propagated selects the objects that are never propagated.
	propagated tenancy.PropagationRules
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, templates *template.Reader, rules interpreter.Source, o Options) error {
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("creating a discovery client: %w", err)
	}
	if err := indexBindings(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r := &reconciler{
		karmada: mgr.GetClient(), karmadaReader: mgr.GetAPIReader(), templateReader: templates, rules: rules,
		events:         telemetry.NewEvents(mgr.GetEventRecorderFor(Name)).WithMode(o.Events), //nolint:staticcheck // the newer recorder writes another API
		referenceIndex: newReferenceIndex(), conflicts: newConflicts(), propagated: o.Propagated,
	}
	r.watches = newWatches(templates, discoveryClient, r.referenceIndex, o.WatchInterval, mgr.GetLogger().WithName(Name))
	options := queues.ControllerOptions[reconcile.Request](mgr, o.Workers, o.Backoff)
	options.ReconciliationTimeout = reconcileTimeout
	err = builder.ControllerManagedBy(mgr).Named(Name).
		Watches(&workv1alpha2.ResourceBinding{}, r.onBinding()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, r.onBinding()).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.watches.setQueue(queue)
			return nil
		})).
		WithOptions(options).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return mgr.Add(manager.RunnableFunc(r.watches.run))
}

// Reconcile implements reconcile.Reconciler. A request names a dependent, which always has a
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
	if dependent.DeletionTimestamp != nil || !dependent.Spec.PropagateDeps {
		return r.finishReconcile(dependent, r.finalize(ctx, dependent))
	}
	return r.finishReconcile(dependent, r.distribute(ctx, dependent))
}
