// Package detector answers "which policy does an object of a user follow, and
// what does its binding have to say?": it watches every kind that can be
// propagated, claims each template for the policy that wins it, and keeps the
// template's binding in line with both.
//
// What is decided, is decided by the policy package; this one looks, asks and
// writes. Invariants:
//
//   - policies are known before the first template is looked at;
//   - a pass waits for no cache that does not come: what is not seen yet is asked
//     for, or looked at again shortly;
//   - a new template costs one patch (its claim, unless it was written along with
//     the template) and one create (its binding); a pass that finds everything in
//     order costs no write;
//   - a claim is released only when its policy is known to be gone or to select
//     the template no longer, from the binding first, then from the template;
//   - nothing is ever deleted here.
package detector

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/reach"
)

// Name is the name of the controller in logs and events.
const Name = "resource-detector"

// Options are what operators may tune.
type Options struct {
	// Workers is how many templates are worked on at once.
	Workers int
	// PolicyWorkers and ClusterPolicyWorkers are how many policies of each kind are
	// worked on at once.
	PolicyWorkers, ClusterPolicyWorkers int
	// DiscoveryInterval is how often the served kinds are listed when nothing
	// tells of a change. A kind that is missing for that long, or whose definition
	// was deleted, is watched no more.
	DiscoveryInterval time.Duration
	// PriorityQueue handles what users change before what is only looked at again:
	// the objects there are at the start, and those of a policy that changed.
	PriorityQueue bool
	// Backoff is that of a template or policy that failed.
	Backoff queues.Backoff
	// RetryRate is how many failed templates are tried again in a second, and
	// likewise of policies, after RetryBurst that come at once. It counts without
	// PriorityQueue only.
	RetryRate, RetryBurst int

	// Propagated says which objects are never templates.
	Propagated reach.Propagated

	// Preemption lets policies take templates from others.
	Preemption bool
	// MultiplePodTemplates lets interpreters tell the components of a template
	// apart.
	MultiplePodTemplates bool
	// WorkloadAffinity groups bindings by labels of their templates.
	WorkloadAffinity bool
	// PriorityScheduling gives bindings the value of the policy's PriorityClass.
	PriorityScheduling bool
	// ResourceQuotaEstimate records in which namespace a replica needs its
	// resources.
	ResourceQuotaEstimate bool

	// Offer is given a claimant while this process decides, and nil when it ends.
	// A nil Offer wants none.
	Offer func(Claimant)
	// Events selects the successes that are written as events.
	Events observe.Mode
}

// DefaultOptions are the defaults of the control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 5, PolicyWorkers: 1, ClusterPolicyWorkers: 1, DiscoveryInterval: 30 * time.Second, PriorityQueue: true,
		Backoff: queues.DefaultBackoff(), RetryRate: 10, RetryBurst: 100,
		Propagated:         reach.Propagated{APIs: reach.DefaultSkippedAPIs()},
		PriorityScheduling: true,
	}
}

// reference names a template.
type reference struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
}

// String is the name for people.
func (r reference) String() string { return r.kind.Kind + " " + r.key.String() }

// request asks for one pass over a template. The same template may wait for two
// passes, one for either cause.
type request struct {
	reference
	cause policy.Cause
}

type detector struct {
	options  Options
	karmada  client.Client
	live     client.Reader
	cache    cache.Cache
	reader   *template.Reader
	resolver discovery.ServerResourcesInterface
	rules    interpreter.Source
	events   *observe.Events
	counters *counters
	log      logr.Logger

	templates controller.TypedController[request]
	entrance  *entrance
	kinds     *kinds
	policies  *catalog
	waiting   *waiting
	claims    *claims
	// overrides holds the passes that wait for an override policy, holders those
	// that wait for the end of a binding that belongs to another template.
	overrides, holders *blocked
	echoes             *echoes
	listed             *listed
	// noMatchGrace is the constant of that name.
	noMatchGrace time.Duration
	// definitions tells that the served kinds may have changed.
	definitions chan struct{}
}

// Add registers the controllers with a manager: one for templates, one for each
// kind of policy, and the discovery of kinds, which are watched by the reader.
func Add(mgr manager.Manager, reader *template.Reader, rules interpreter.Source, o Options) error {
	resolver, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("making a discovery client: %w", err)
	}
	counted, err := newCounters(metrics.Registry)
	if err != nil {
		return err
	}
	d := &detector{
		options: o, karmada: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(), reader: reader,
		resolver: resolver, rules: rules,
		events:   observe.NewEvents(mgr.GetEventRecorderFor(Name)).In(o.Events), //nolint:staticcheck // the newer recorder writes another API
		counters: counted, log: mgr.GetLogger().WithName(Name),
		kinds: newKinds(), policies: newCatalog(), waiting: newWaiting(), claims: newClaims(), overrides: newBlocked(), holders: newBlocked(), echoes: newEchoes(), listed: newListed(), noMatchGrace: noMatchGrace,
		definitions: make(chan struct{}, 1),
	}
	if err := d.indexBindings(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	views, err := d.addPolicies(mgr)
	if err != nil {
		return err
	}
	if err := d.addTemplates(mgr, views); err != nil {
		return err
	}
	if o.Offer != nil {
		if err := mgr.Add(manager.RunnableFunc(d.offer)); err != nil {
			return fmt.Errorf("adding %s: %w", Name, err)
		}
	}
	return mgr.Add(manager.RunnableFunc(d.discover))
}

// addTemplates registers the controller of templates. Its workers start when all
// views are complete.
func (d *detector) addTemplates(mgr manager.Manager, views []*view) error {
	options := controllerOptions[request](mgr, d.options.Workers, d.options)
	options.Reconciler = templateReconciler{d}
	options.LogConstructor = func(r *request) logr.Logger {
		if r == nil {
			return d.log
		}
		return d.log.WithValues("kind", r.kind, "template", r.key)
	}
	templates, err := controller.NewTyped(Name, mgr, options)
	if err != nil {
		return fmt.Errorf("adding %s: %w", Name, err)
	}
	d.templates = templates
	d.entrance = newEntrance(d, views)
	return templates.Watch(source.TypedSource[request](d.entrance))
}

// controllerOptions are those of the controllers of templates and of policies.
func controllerOptions[T comparable](mgr manager.Manager, workers int, o Options) controller.TypedOptions[T] {
	options := queues.Options[T](mgr, workers, o.Backoff)
	// One process may run several control planes.
	options.SkipNameValidation = new(true)
	options.UsePriorityQueue, options.RateLimiter = &o.PriorityQueue, limiter[T](o)
	return options
}

// limiter paces retries: each item backs off by itself, and without priorities
// all of them share a rate, so that they leave room for what users change.
func limiter[T comparable](o Options) workqueue.TypedRateLimiter[T] {
	single := queues.Limiter[T](o.Backoff)
	if o.PriorityQueue {
		return single
	}
	return workqueue.NewTypedMaxOfRateLimiter(single,
		&workqueue.TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(rate.Limit(o.RetryRate), o.RetryBurst)})
}

// enqueue asks for a pass over templates because of a policy, behind whatever
// users do meanwhile.
func (d *detector) enqueue(ctx context.Context, cause policy.Cause, references ...reference) error {
	queue, err := d.entrance.open(ctx)
	if err != nil {
		return err
	}
	for _, r := range references {
		addLow(queue, request{reference: r, cause: cause})
	}
	return nil
}
