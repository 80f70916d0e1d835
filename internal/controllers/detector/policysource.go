package detector

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// policySource is the event source of one policy controller. It adds a policy to the
// catalog before it queues the policy.
type policySource struct {
	scope     policyScope
	informers informers
	catalog   *policyCatalog
	// queue is the queue of templates.
	queue *templateQueue
	// templatesOf returns the templates that contain the permanent ID of a policy.
	templatesOf func(id string) []templateRef
	// preemption is true if policies may take over templates from other policies.
	preemption bool
	// priorityScheduling is true if bindings have the value of the PriorityClass that the policy
	// names.
	priorityScheduling bool
	sync               *handlerSync
}

// String names the source in logs.
func (s *policySource) String() string { return s.scope.plural }

// Start implements source.TypedSource.
func (s *policySource) Start(ctx context.Context, queue loop.Queue[reconcile.Request]) error {
	if s.priorityScheduling {
		if err := s.watchPriorityClasses(ctx, queue); err != nil {
			return err
		}
	}
	return s.sync.watch(ctx, s.informers, s.scope.newPolicy(), s.newPolicyHandler(queue))
}

// WaitForSync implements source.TypedSyncingSource.
func (s *policySource) WaitForSync(ctx context.Context) error { return s.sync.waitForSync(ctx) }

// newPolicyHandler returns a handler that updates the catalog and queues policies.
func (s *policySource) newPolicyHandler(queue loop.Queue[reconcile.Request]) toolscache.ResourceEventHandler {
	return loop.Handlers[policy.Object]{
		Added:   func(added policy.Object, isInInitialList bool) { s.addPolicy(queue, added, isInInitialList) },
		Updated: func(before, after policy.Object) { s.updatePolicy(queue, before, after) },
		Deleted: s.deletePolicy,
	}
}

// addPolicy queues a new policy. A policy of the initial list is queued only if it is being deleted
// or may preempt other policies. All other work for such a policy is done anyway, because every
// template is reconciled at the start.
func (s *policySource) addPolicy(queue loop.Queue[reconcile.Request], p policy.Object, initial bool) {
	s.catalog.put(p)
	if !initial {
		queue.Add(policyRequest(p))
		return
	}
	if p.GetDeletionTimestamp() != nil || s.preemption && policy.CanPreempt(p) {
		loop.EnqueueLowPriority(queue, 0, policyRequest(p))
	}
}

func (s *policySource) updatePolicy(queue loop.Queue[reconcile.Request], before, after policy.Object) {
	s.catalog.put(after)
	if !policy.HasRelevantPolicyChange(before, after) {
		return
	}
	if policy.ClaimOf(before) != policy.ClaimOf(after) {
		// After an interrupted watch, a policy that was deleted and created again is delivered as
		// an update. The templates of the earlier policy are queued, because their claims have
		// another ID.
		s.enqueueClaimed(before)
	}
	queue.Add(policyRequest(after))
	if !s.preemption {
		return
	}
	for _, preemptor := range s.catalog.preemptorsAfterUpdate(before, after) {
		queue.Add(policyRequest(preemptor))
	}
}

// deletePolicy queues the templates of a policy that was deleted without its finalizer.
func (s *policySource) deletePolicy(p policy.Object) {
	s.catalog.delete(p)
	s.enqueueClaimed(p)
}

// enqueueClaimed queues the templates that contain the claim of a deleted policy. It does nothing
// before the queue is open, because all templates are queued after that anyway.
func (s *policySource) enqueueClaimed(p policy.Object) {
	if s.queue.isOpen() {
		s.queue.addLowPriority(policy.TemplateChanged, s.templatesOf(policy.ClaimOf(p).ID)...)
	}
}

// policyRequest returns the request to reconcile a policy.
func policyRequest(p policy.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: policyKey(p)}
}

// watchPriorityClasses queues the policies that refer to a PriorityClass when the PriorityClass is
// created or its value changes. It ignores deletions, because existing bindings keep their
// priority.
func (s *policySource) watchPriorityClasses(ctx context.Context, queue loop.Queue[reconcile.Request]) error {
	informer, err := s.informers.GetInformer(ctx, newObject(priorityClassKind), cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(s.newPriorityClassHandler(queue))
	}
	if err != nil {
		return fmt.Errorf("watching PriorityClasses: %w", err)
	}
	return nil
}

// newPriorityClassHandler returns a handler that ignores the PriorityClasses of the initial list,
// because every template is reconciled at the start anyway.
func (s *policySource) newPriorityClassHandler(queue loop.Queue[reconcile.Request]) toolscache.ResourceEventHandler {
	enqueuePolicies := func(class *unstructured.Unstructured) {
		for _, p := range s.catalog.withPriorityClass(class.GetName()) {
			if policy.IsCluster(p) == s.scope.isCluster {
				loop.EnqueueLowPriority(queue, 0, policyRequest(p))
			}
		}
	}
	return loop.Handlers[*unstructured.Unstructured]{
		Added: func(class *unstructured.Unstructured, isInInitialList bool) {
			if !isInInitialList {
				enqueuePolicies(class)
			}
		},
		Updated: func(before, after *unstructured.Unstructured) {
			if policy.PriorityClassValue(before) != policy.PriorityClassValue(after) {
				enqueuePolicies(after)
			}
		},
	}
}
