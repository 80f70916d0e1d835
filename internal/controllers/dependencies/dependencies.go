// Package dependencies answers "is what an object needs where the object is?": it
// gives the ConfigMaps, Secrets and the like that a template refers to bindings
// that follow the template's own binding, when its policy says propagateDeps.
//
// What is decided, is decided by the dependency package; this one looks, asks and
// writes. Invariants:
//
//   - a dependent bears our finalizer before anything is attached to it, so that
//     nothing stays attached to what is gone;
//   - a pass that finds everything in order costs no write;
//   - a reference is known before the object is looked for: one that appears
//     later finds who waits for it, whatever its namespace;
//   - a binding is deleted only when we let its last dependent go and nobody else
//     says where it should be;
//   - watches of kinds are opened beside the passes, which do not need them.
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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/reach"
)

// Name is the name of the controller in logs and events.
const Name = "dependencies-distributor"

// passLimit bounds one pass, so that a webhook that does not answer holds a
// worker for that long at most.
const passLimit = time.Minute

// Options are what operators may tune.
type Options struct {
	// Workers is how many dependents are worked on at once.
	Workers int
	// Backoff is that of a dependent that failed.
	Backoff queues.Backoff
	// WatchInterval is how often it is checked that the kinds of dependencies are
	// watched: kinds may be served later, and watches be ended by others.
	WatchInterval time.Duration
	// Events selects the successes that are written as events.
	Events observe.Mode
	// Propagated says what is never propagated.
	Propagated reach.Propagated
}

// DefaultOptions are those of a production control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 2, Backoff: queues.DefaultBackoff(), WatchInterval: 5 * time.Second,
		Propagated: reach.Propagated{APIs: reach.DefaultSkippedAPIs()},
	}
}

type reconciler struct {
	karmada   client.Client
	live      client.Reader
	templates *template.Reader
	rules     interpreter.Source
	events    *observe.Events
	needs     *needs
	watches   *watches
	quarrels  *quarrels
	// propagated says what is never propagated.
	propagated reach.Propagated
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, templates *template.Reader, rules interpreter.Source, o Options) error {
	resolver, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("making a discovery client: %w", err)
	}
	if err := index(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r := &reconciler{
		karmada: mgr.GetClient(), live: mgr.GetAPIReader(), templates: templates, rules: rules,
		events: observe.NewEvents(mgr.GetEventRecorderFor(Name)).In(o.Events), //nolint:staticcheck // the newer recorder writes another API
		needs:  newNeeds(), quarrels: newQuarrels(), propagated: o.Propagated,
	}
	r.watches = newWatches(templates, resolver, r.needs, o.WatchInterval, mgr.GetLogger().WithName(Name))
	options := queues.Options[reconcile.Request](mgr, o.Workers, o.Backoff)
	options.ReconciliationTimeout = passLimit
	err = builder.ControllerManagedBy(mgr).Named(Name).
		Watches(&workv1alpha2.ResourceBinding{}, r.onBinding()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, r.onBinding()).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.watches.opened(queue)
			return nil
		})).
		WithOptions(options).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return mgr.Add(manager.RunnableFunc(r.watches.run))
}

// Reconcile implements reconcile.Reconciler. A request names a dependent, which
// always has a namespace.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	dependent := &workv1alpha2.ResourceBinding{}
	err := r.karmada.Get(ctx, request.NamespacedName, dependent, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return settle(r.abandon(ctx, request.NamespacedName))
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading binding %s: %w", request.NamespacedName, err)
	}
	if dependent.DeletionTimestamp != nil || !dependent.Spec.PropagateDeps {
		return r.conclude(dependent, r.withdraw(ctx, dependent))
	}
	return r.conclude(dependent, r.distribute(ctx, dependent))
}
