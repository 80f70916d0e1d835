// Package detector claims each template for the best matching policy and updates the template's
// binding when the template or the policy changes. It watches every kind that can be propagated.
//
// The package domain/policy makes the decisions. This package reads objects, calls that package,
// and writes the result. kindDiscovery finds the kinds to watch.
//
// Invariants:
//
//   - All policies are in the catalog before the first template is reconciled.
//   - A reconcile does not wait for the cache of one kind. An object that is not yet in a cache is
//     read from the API server, or the request is queued again after a short delay.
//   - A new template costs one patch for its claim, unless it was created with the claim, and one
//     create request for its binding. A reconcile without a difference writes nothing.
//   - A claim is released only if it is certain that its policy was deleted or no longer selects the
//     template. It is removed first from the binding, then from the template.
//   - The detector deletes no object.
package detector

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/loop"
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
	// DiscoveryInterval is the interval at which the served kinds are listed if no change is
	// observed. The watch of a kind ends when the kind has not been served for this time, or when
	// the definition of the kind was deleted.
	DiscoveryInterval time.Duration
	// PriorityQueue makes changes by users take precedence over low-priority requests. Low-priority
	// requests are for the objects that exist at the start, and for the templates of a changed
	// policy.
	PriorityQueue bool
	// Backoff is the backoff for templates and policies that failed.
	Backoff loop.Backoff
	// RetryRate is the number of failed templates that are retried per second, and also the number
	// of failed policies that are retried per second. RetryBurst is the number of retries that may
	// run at once. Both are used only without PriorityQueue.
	RetryRate, RetryBurst int

	// Propagated selects the objects that are never templates.
	Propagated tenancy.PropagationRules

	// Preemption lets policies take over templates from other policies.
	Preemption bool
	// MultiplePodTemplates stores the components of a template, which the interpreter returns, in
	// place of the replicas.
	MultiplePodTemplates bool
	// WorkloadAffinity groups bindings by labels of their templates.
	WorkloadAffinity bool
	// PriorityScheduling sets the priority of bindings to the value of the PriorityClass that the
	// policy names.
	PriorityScheduling bool
	// ResourceQuotaEstimate records the namespace in which a replica needs its resources.
	ResourceQuotaEstimate bool

	// SetClaimLookup is called with a lookup when this process becomes the leader, and with nil
	// when it stops. SetClaimLookup may be nil.
	SetClaimLookup func(ClaimLookup)
	// Placer selects the clusters of new bindings if the scheduler runs in this process.
	Placer *loop.BindingPlacer
	// Events selects the successes that are recorded as events.
	Events loop.EventMode
}

// ClaimLookup returns the claim of the policy that will claim an object which is about to be
// created. It returns false if the policy is not certain. The component that stores the object can
// write the claim together with the object, which saves a second write. The detector reconciles the
// template afterwards in any case.
type ClaimLookup func(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool)

// DefaultOptions returns the defaults of the control plane.
func DefaultOptions() Options {
	return Options{
		Workers: 5, PolicyWorkers: 1, ClusterPolicyWorkers: 1, DiscoveryInterval: 30 * time.Second, PriorityQueue: true,
		Backoff: loop.DefaultBackoff(), RetryRate: 10, RetryBurst: 100,
		Propagated:         tenancy.PropagationRules{APIs: tenancy.DefaultSkippedAPIs()},
		PriorityScheduling: true,
	}
}

// Add registers the controllers with a manager: one for templates, one for each kind of policy, and
// the discovery of kinds.
func Add(mgr manager.Manager, watchManager *watches.Manager, reader *template.Reader, rules interpreter.Source, o Options) error {
	server, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("creating a discovery client: %w", err)
	}
	measured, err := newCounters(metrics.Registry)
	if err != nil {
		return err
	}
	if err := loop.AddIndexes(mgr.GetFieldIndexer(), loop.BindingsByPolicy); err != nil {
		return err
	}
	d := newDetector(dependencies{
		karmada: mgr.GetClient(), karmadaReader: mgr.GetAPIReader(), cache: mgr.GetCache(), watches: watchManager, templateReader: reader,
		rules:  rules,
		events: loop.EventsFor(mgr, Name, o.Events), counters: measured, log: mgr.GetLogger().WithName(Name),
	}, o)
	if err := d.addPolicyControllers(mgr, o); err != nil {
		return err
	}
	if err := d.addTemplateController(mgr, o); err != nil {
		return err
	}
	if o.SetClaimLookup != nil {
		if err := mgr.Add(d.publishClaimLookup(o.SetClaimLookup)); err != nil {
			return fmt.Errorf("adding %s: %w", Name, err)
		}
	}
	return mgr.Add(d.runDiscovery(kindDiscoveryConfig{
		Lister: server, Manager: watchManager, Skipped: o.Propagated.APIs, Interval: o.DiscoveryInterval, Log: d.log,
	}))
}
