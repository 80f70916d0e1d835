// Package triggers answers "which templates and policies does a change queue?". It contains the
// sources of the controllers of templates and policies. Invariants:
//
//   - A policy is in the catalog before it is queued, and a claim is in the index before its
//     template is queued, so that the reconcile uses them.
//   - The workers for templates start when the handlers of policies, override policies and bindings
//     are in sync. They wait for no other kind.
//   - Changes by users are queued before objects that exist at the start, and before the templates
//     of a changed policy.
package triggers

import (
	"context"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/controllers/detector/waiting"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// Startup is the source with which the controller of templates starts. It opens the queue and
// delays the workers until all its handlers are in sync. Unlike the sources of controller-runtime,
// it does not wait for every kind that the process watches, because a kind that cannot be listed
// must not block the other kinds.
type Startup struct {
	StartupConfig
	watches []startupWatch
}

// StartupConfig contains the dependencies of a Startup.
type StartupConfig struct {
	Informers Informers
	Queue     *templates.Queue
	Initial   *waiting.Initial
	// AwaitingOverride contains the requests that wait for an override policy.
	AwaitingOverride *waiting.Requests
	Events           *loop.Events
	// PolicySyncs are the states of the policy handlers. The workers wait for these handlers too.
	PolicySyncs []*HandlerSync
}

// startupWatch describes the watch of one kind that Startup.Start starts.
type startupWatch struct {
	sync   *HandlerSync
	object client.Object
	handle toolscache.ResourceEventHandler
}

// NewStartup returns a source that is not started.
func NewStartup(config StartupConfig) *Startup {
	s := &Startup{StartupConfig: config}
	s.watches = []startupWatch{
		{NewHandlerSync("OverridePolicies"), &policyv1alpha1.OverridePolicy{}, s.OnOverrides()},
		{NewHandlerSync("ClusterOverridePolicies"), &policyv1alpha1.ClusterOverridePolicy{}, s.OnOverrides()},
		{NewHandlerSync("ResourceBindings"), &workv1alpha2.ResourceBinding{}, s.OnBindings()},
		{NewHandlerSync("ClusterResourceBindings"), &workv1alpha2.ClusterResourceBinding{}, s.OnBindings()},
	}
	return s
}

// String names the source in logs.
func (s *Startup) String() string { return "handlers of policies, overrides and bindings" }

// Start implements source.TypedSource.
func (s *Startup) Start(ctx context.Context, queue loop.Queue[templates.Request]) error {
	s.Initial.SetStartTime(time.Now())
	s.Queue.Open(queue)
	for _, watch := range s.watches {
		if err := watch.sync.watch(ctx, s.Informers, watch.object, watch.handle); err != nil {
			return err
		}
	}
	return nil
}

// WaitForSync implements source.TypedSyncingSource. It may be called before Start.
func (s *Startup) WaitForSync(ctx context.Context) error {
	for _, sync := range s.PolicySyncs {
		if err := sync.waitForSync(ctx); err != nil {
			return err
		}
	}
	for _, watch := range s.watches {
		if err := watch.sync.waitForSync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// OnOverrides queues the requests that wait for an override policy.
func (s *Startup) OnOverrides() toolscache.ResourceEventHandler {
	return loop.Handlers[override.Object]{
		Added: func(created override.Object, _ bool) {
			s.Queue.Add(s.AwaitingOverride.Take(client.ObjectKeyFromObject(created))...)
		},
	}
}

// OnBindings returns a handler that queues the template of a deleted binding, because an earlier
// binding may have blocked the name, or a user may have deleted a binding that is still needed. The
// handler also records changes of the suspension as events.
func (s *Startup) OnBindings() toolscache.ResourceEventHandler {
	return loop.Handlers[binding.Object]{
		Added: func(added binding.Object, isInInitialList bool) {
			if !isInInitialList {
				s.recordSuspension(nil, added)
			}
		},
		Updated: s.recordSuspension,
		Deleted: func(deleted binding.Object) {
			s.Queue.Add(templates.RefFromBinding(&deleted.BindingSpec().Resource).Request(policy.TemplateChanged))
		},
	}
}

// recordSuspension records an event on the template when its binding was suspended or resumed. It
// observes the binding, because both policies and users can suspend a binding.
func (s *Startup) recordSuspension(before, after binding.Object) {
	suspension, changed := policy.DescribeSuspension(before, after)
	if !changed || after.GetDeletionTimestamp() != nil {
		return
	}
	reason := workv1alpha2.EventReasonPropagationResumed
	if suspension.Suspended {
		reason = workv1alpha2.EventReasonPropagationSuspended
	}
	s.Events.RecordDecision(binding.TemplateReference(after), reason, "%s", suspension.Message)
}
