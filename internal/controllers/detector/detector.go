// Package detector answers "which policy claims a template, and what is in its binding?". It
// watches every kind that can be propagated, claims each template for the best matching
// policy, and keeps the binding of the template equal to what the template and the policy
// require.
//
// The policy package decides. This package reads, calls it, and writes. Invariants:
//
//   - all policies are in the catalog before the first template is reconciled;
//   - a reconcile does not block on the cache of one kind: an object that is not in a cache
//     yet is read from the API server, or the request is queued again shortly;
//   - a new template costs one patch (its claim, unless it was created with the claim) and one
//     create (its binding); a reconcile without a difference writes nothing;
//   - a claim is released only when its policy is known to be deleted or to select the
//     template no longer, first from the binding, then from the template;
//   - the detector deletes no object.
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

	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/access/telemetry"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
)

// Name is the name of the controller in logs and events.
const Name = "resource-detector"

// Options are the settings that operators may change.
type Options struct {
	// Workers is the number of templates that are reconciled in parallel.
	Workers int
	// PolicyWorkers and ClusterPolicyWorkers are the numbers of policies of each kind that are
	// reconciled in parallel.
	PolicyWorkers, ClusterPolicyWorkers int
	// DiscoveryInterval is how often the served kinds are listed without a known change. The
	// watch of a kind ends when the kind is not served for this long, or when its definition
	// was deleted.
	DiscoveryInterval time.Duration
	// PriorityQueue handles changes by users before low-priority requests: the objects that
	// exist at the start, and the templates of a policy that changed.
	PriorityQueue bool
	// Backoff is the backoff of a template or policy that failed.
	Backoff queues.Backoff
	// RetryRate is how many failed templates are retried per second, and likewise failed
	// policies. RetryBurst is how many may be retried at once. Both are used only without
	// PriorityQueue.
	RetryRate, RetryBurst int

	// Propagated selects the objects that are never templates.
	Propagated tenancy.PropagationRules

	// Preemption lets policies take templates from others.
	Preemption bool
	// MultiplePodTemplates uses the interpreters' components of a template in place of
	// replicas.
	MultiplePodTemplates bool
	// WorkloadAffinity groups bindings by labels of their templates.
	WorkloadAffinity bool
	// PriorityScheduling gives bindings the value of the policy's PriorityClass.
	PriorityScheduling bool
	// ResourceQuotaEstimate records the namespace in which a replica needs its resources.
	ResourceQuotaEstimate bool

	// SetClaimLookup is called with a lookup while this process is the leader, and with nil
	// when it ends. SetClaimLookup may be nil.
	SetClaimLookup func(ClaimLookup)
	// Events selects the successes that are recorded as events.
	Events telemetry.Mode
}

// DefaultOptions returns the defaults of the control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 5, PolicyWorkers: 1, ClusterPolicyWorkers: 1, DiscoveryInterval: 30 * time.Second, PriorityQueue: true,
		Backoff: queues.DefaultBackoff(), RetryRate: 10, RetryBurst: 100,
		Propagated:         tenancy.PropagationRules{APIs: tenancy.DefaultSkippedAPIs()},
		PriorityScheduling: true,
	}
}

// templateRef identifies a template.
type templateRef struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
}

// String returns the kind, namespace and name for messages.
func (r templateRef) String() string { return r.kind.Kind + " " + r.key.String() }

// templateRequest is a request to reconcile a template. The same template may be queued twice,
// once per cause.
type templateRequest struct {
	templateRef
	cause policy.Trigger
}

type detector struct {
	options         Options
	karmada         client.Client
	karmadaReader   client.Reader
	cache           cache.Cache
	templateReader  *template.Reader
	discoveryClient discovery.ServerResourcesInterface
	rules           interpreter.Source
	events          *telemetry.Events
	counters        *counters
	log             logr.Logger

	templateController controller.TypedController[templateRequest]
	startup            *startupSource
	watchedKinds       *watchedKinds
	policies           *policyCatalog
	waitingTemplates   *waitingTemplates
	claims             *claimIndex
	// waitingForOverride holds the requests that wait for an override policy.
	// waitingForBinding holds those that wait for the deletion of a binding that another
	// template owns.
	waitingForOverride, waitingForBinding *blockedRequests
	claimWrites                           *claimWriteTracker
	initialTemplates                      *initialTemplates
	// noMatchGrace has the value of the constant; tests change it.
	noMatchGrace time.Duration
	// definitionsChanged has an item when the served kinds may have changed.
	definitionsChanged chan struct{}
}

// Add registers the controllers with a manager: one for templates, one for each kind of
// policy, and the discovery of kinds. The reader watches the kinds.
func Add(mgr manager.Manager, reader *template.Reader, rules interpreter.Source, o Options) error {
	resolver, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("creating a discovery client: %w", err)
	}
	counters, err := newCounters(metrics.Registry)
	if err != nil {
		return err
	}
	d := &detector{
		options: o, karmada: mgr.GetClient(), karmadaReader: mgr.GetAPIReader(), cache: mgr.GetCache(), templateReader: reader,
		discoveryClient: resolver, rules: rules,
		events:   telemetry.NewEvents(mgr.GetEventRecorderFor(Name)).WithMode(o.Events), //nolint:staticcheck // the newer recorder writes another API
		counters: counters, log: mgr.GetLogger().WithName(Name),
		watchedKinds: newWatchedKinds(), policies: newPolicyCatalog(), waitingTemplates: newWaitingTemplates(), claims: newClaimIndex(),
		waitingForOverride: newBlockedRequests(), waitingForBinding: newBlockedRequests(),
		claimWrites: newClaimWriteTracker(), initialTemplates: newInitialTemplates(), noMatchGrace: noMatchGrace,
		definitionsChanged: make(chan struct{}, 1),
	}
	if err := d.indexBindings(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	policySyncs, err := d.addPolicyControllers(mgr)
	if err != nil {
		return err
	}
	if err := d.addTemplateController(mgr, policySyncs); err != nil {
		return err
	}
	if o.SetClaimLookup != nil {
		if err := mgr.Add(manager.RunnableFunc(d.publishClaimLookup)); err != nil {
			return fmt.Errorf("adding %s: %w", Name, err)
		}
	}
	return mgr.Add(manager.RunnableFunc(d.runDiscovery))
}

// addTemplateController registers the controller of templates. Its workers start when all
// handlers are in sync.
func (d *detector) addTemplateController(mgr manager.Manager, policySyncs []*handlerSync) error {
	options := controllerOptions[templateRequest](mgr, d.options.Workers, d.options)
	options.Reconciler = templateReconciler{d}
	options.LogConstructor = func(r *templateRequest) logr.Logger {
		if r == nil {
			return d.log
		}
		return d.log.WithValues("kind", r.kind, "template", r.key)
	}
	templates, err := controller.NewTyped(Name, mgr, options)
	if err != nil {
		return fmt.Errorf("adding %s: %w", Name, err)
	}
	d.templateController = templates
	d.startup = newStartupSource(d, policySyncs)
	return templates.Watch(source.TypedSource[templateRequest](d.startup))
}

// controllerOptions returns the options of the controllers of templates and of policies.
func controllerOptions[T comparable](mgr manager.Manager, workers int, o Options) controller.TypedOptions[T] {
	options := queues.ControllerOptions[T](mgr, workers, o.Backoff)
	// One process may run several control planes.
	options.SkipNameValidation = new(true)
	options.UsePriorityQueue, options.RateLimiter = &o.PriorityQueue, newRateLimiter[T](o)
	return options
}

// newRateLimiter limits retries. Each item has its own backoff. Without a priority queue, all
// items also share a rate, so that retries do not delay changes by users.
func newRateLimiter[T comparable](o Options) workqueue.TypedRateLimiter[T] {
	perItem := queues.NewRateLimiter[T](o.Backoff)
	if o.PriorityQueue {
		return perItem
	}
	return workqueue.NewTypedMaxOfRateLimiter(perItem,
		&workqueue.TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(rate.Limit(o.RetryRate), o.RetryBurst)})
}

// enqueueTemplates queues templates because of a policy, with low priority, so that changes by
// users are handled first.
func (d *detector) enqueueTemplates(ctx context.Context, cause policy.Trigger, references ...templateRef) error {
	queue, err := d.startup.waitForQueue(ctx)
	if err != nil {
		return err
	}
	for _, r := range references {
		enqueueLowPriority(queue, templateRequest{templateRef: r, cause: cause})
	}
	return nil
}
