package detector

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/loop"
)

// startupSource is the source with which the controller of templates starts. It opens the queue and
// delays the workers until all its handlers are in sync. Unlike the sources of controller-runtime,
// it does not wait for every kind that the process watches, because a kind that cannot be listed
// must not block the other kinds. Invariants of all sources of this package:
//
//   - A policy is added to the catalog before it is queued, and a claim is added to the index
//     before its template is queued, so that the reconcile uses them.
//   - The workers for templates start when the handlers of policies, override policies, quotas
//     and bindings are in sync. They wait for no other kind.
//   - Changes by users are queued before objects that exist at the start, and before the templates
//     of a changed policy.
type startupSource struct {
	startupConfig
	watches []startupWatch
}

// startupConfig contains the dependencies of a startupSource.
type startupConfig struct {
	informers informers
	queue     *templateQueue
	initial   *oldTemplates
	// awaitingObject contains the requests that wait for an override policy, and those that a quota refused.
	awaitingObject *waitingRequests
	events         *loop.Events
	// policySyncs are the states of the policy handlers. The workers wait for these handlers too.
	policySyncs []*handlerSync
}

// startupWatch describes the watch of one kind that startupSource.Start starts.
type startupWatch struct {
	sync   *handlerSync
	object client.Object
	handle toolscache.ResourceEventHandler
}

// newStartupSource returns a source that is not started.
func newStartupSource(config startupConfig) *startupSource {
	s := &startupSource{startupConfig: config}
	s.watches = []startupWatch{
		{newHandlerSync("OverridePolicies"), &policyv1alpha1.OverridePolicy{}, s.newOverrideHandler()},
		{newHandlerSync("ClusterOverridePolicies"), &policyv1alpha1.ClusterOverridePolicy{}, s.newOverrideHandler()},
		{newHandlerSync("FederatedResourceQuotas"), &policyv1alpha1.FederatedResourceQuota{}, s.newQuotaHandler()},
		{newHandlerSync("ResourceBindings"), &workv1alpha2.ResourceBinding{}, s.newBindingHandler()},
		{newHandlerSync("ClusterResourceBindings"), &workv1alpha2.ClusterResourceBinding{}, s.newBindingHandler()},
	}
	return s
}

// String names the source in logs.
func (s *startupSource) String() string {
	return "handlers of policies, overrides, quotas and bindings"
}

// Start implements source.TypedSource.
func (s *startupSource) Start(ctx context.Context, queue loop.Queue[templateRequest]) error {
	s.initial.setStartTime(time.Now())
	s.queue.open(queue)
	for _, watch := range s.watches {
		if err := watch.sync.watch(ctx, s.informers, watch.object, watch.handle); err != nil {
			return err
		}
	}
	return nil
}

// WaitForSync implements source.TypedSyncingSource. It may be called before Start.
func (s *startupSource) WaitForSync(ctx context.Context) error {
	for _, sync := range s.policySyncs {
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

// newOverrideHandler returns a handler that queues the requests that wait for an override policy.
func (s *startupSource) newOverrideHandler() toolscache.ResourceEventHandler {
	return loop.Handlers[override.Object]{
		Added: func(created override.Object, _ bool) {
			s.queue.add(s.awaitingObject.take(client.ObjectKeyFromObject(created))...)
		},
	}
}

// quotaKey returns the waitingRequests key for the requests that the quotas in a namespace refused.
func quotaKey(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace}
}

// newQuotaHandler returns a handler that queues the requests that a quota refused, when a quota of their
// namespace has more room or is deleted.
func (s *startupSource) newQuotaHandler() toolscache.ResourceEventHandler {
	return loop.Handlers[*policyv1alpha1.FederatedResourceQuota]{
		Added: func(*policyv1alpha1.FederatedResourceQuota, bool) {},
		Updated: func(older, newer *policyv1alpha1.FederatedResourceQuota) {
			if quota.HasMoreRoom(older, newer) {
				s.queue.add(s.awaitingObject.take(quotaKey(newer.Namespace))...)
			}
		},
		Deleted: func(gone *policyv1alpha1.FederatedResourceQuota) {
			s.queue.add(s.awaitingObject.take(quotaKey(gone.Namespace))...)
		},
	}
}

// newBindingHandler returns a handler that queues the template of a deleted binding, because an
// earlier binding may have blocked the name, or a user may have deleted a binding that is still
// needed. The handler also records changes of the suspension as events.
func (s *startupSource) newBindingHandler() toolscache.ResourceEventHandler {
	return loop.Handlers[binding.Object]{
		Added: func(added binding.Object, isInInitialList bool) {
			if !isInInitialList {
				s.recordSuspension(nil, added)
			}
		},
		Updated: s.recordSuspension,
		Deleted: func(deleted binding.Object) {
			s.queue.add(refFromBinding(&deleted.BindingSpec().Resource).request(policy.TemplateChanged))
		},
	}
}

// recordSuspension records an event on the template when its binding was suspended or resumed. It
// observes the binding, because both policies and users can suspend a binding.
func (s *startupSource) recordSuspension(before, after binding.Object) {
	suspension, changed := policy.DescribeSuspension(before, after)
	if !changed || after.GetDeletionTimestamp() != nil {
		return
	}
	reason := workv1alpha2.EventReasonPropagationResumed
	if suspension.Suspended {
		reason = workv1alpha2.EventReasonPropagationSuspended
	}
	s.events.RecordDecision(binding.TemplateReference(after), reason, "%s", suspension.Message)
}
