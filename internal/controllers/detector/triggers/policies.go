package triggers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/controllers/detector/binder"
	"karmada.io/karmada/internal/controllers/detector/catalog"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// Policies is the source of the controller of one kind of policies. It adds a policy to the
// catalog before it queues the policy.
type Policies struct {
	Scope     catalog.Scope
	Informers Informers
	Catalog   *catalog.Catalog
	// Queue is the queue of templates.
	Queue *templates.Queue
	// TemplatesOf returns the templates that contain the permanent ID of a policy.
	TemplatesOf func(id string) []templates.Ref
	// Preemption is true if policies may take over templates from other policies.
	Preemption bool
	// PriorityScheduling is true if bindings have the value of the PriorityClass that the policy
	// names.
	PriorityScheduling bool
	Sync               *HandlerSync
}

// String names the source in logs.
func (s *Policies) String() string { return s.Scope.Plural }

// Start implements source.TypedSource.
func (s *Policies) Start(ctx context.Context, queue loop.Queue[reconcile.Request]) error {
	if s.PriorityScheduling {
		if err := s.watchPriorityClasses(ctx, queue); err != nil {
			return err
		}
	}
	return s.Sync.watch(ctx, s.Informers, s.Scope.NewPolicy(), s.OnPolicies(queue))
}

// WaitForSync implements source.TypedSyncingSource.
func (s *Policies) WaitForSync(ctx context.Context) error { return s.Sync.waitForSync(ctx) }

// OnPolicies queues policies.
func (s *Policies) OnPolicies(queue loop.Queue[reconcile.Request]) toolscache.ResourceEventHandler {
	return loop.Handlers[policy.Object]{
		Added:   func(added policy.Object, isInInitialList bool) { s.onAdd(queue, added, isInInitialList) },
		Updated: func(before, after policy.Object) { s.onUpdate(queue, before, after) },
		Deleted: s.onDelete,
	}
}

// onAdd queues a new policy. A policy of the initial list is queued only if it is being deleted or
// may preempt other policies. All other work for such a policy is done anyway, because every
// template is reconciled at the start.
func (s *Policies) onAdd(queue loop.Queue[reconcile.Request], p policy.Object, initial bool) {
	s.Catalog.Put(p)
	if !initial {
		queue.Add(RequestFor(p))
		return
	}
	if p.GetDeletionTimestamp() != nil || s.Preemption && policy.CanPreempt(p) {
		loop.EnqueueLowPriority(queue, 0, RequestFor(p))
	}
}

func (s *Policies) onUpdate(queue loop.Queue[reconcile.Request], before, after policy.Object) {
	s.Catalog.Put(after)
	if !policy.HasRelevantPolicyChange(before, after) {
		return
	}
	if policy.ClaimOf(before) != policy.ClaimOf(after) {
		// After an interrupted watch, a policy that was deleted and created again is delivered as
		// an update. The templates of the earlier policy are queued, because their claims have
		// another ID.
		s.enqueueClaimed(before)
	}
	queue.Add(RequestFor(after))
	if !s.Preemption {
		return
	}
	for _, preemptor := range s.Catalog.PreemptorsAfterUpdate(before, after) {
		queue.Add(RequestFor(preemptor))
	}
}

// onDelete queues the templates of a policy that was deleted without its finalizer.
func (s *Policies) onDelete(p policy.Object) {
	s.Catalog.Delete(p)
	s.enqueueClaimed(p)
}

// enqueueClaimed queues the templates that contain the claim of a deleted policy. It does nothing
// before the queue is open, because all templates are queued after that anyway.
func (s *Policies) enqueueClaimed(p policy.Object) {
	if s.Queue.IsOpen() {
		s.Queue.AddLowPriority(policy.TemplateChanged, s.TemplatesOf(policy.ClaimOf(p).ID)...)
	}
}

// RequestFor returns the request to reconcile a policy.
func RequestFor(p policy.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: catalog.KeyOf(p)}
}

// watchPriorityClasses queues the policies that refer to a PriorityClass when the PriorityClass is
// created or its value changes. It ignores deletions, because existing bindings keep their
// priority.
func (s *Policies) watchPriorityClasses(ctx context.Context, queue loop.Queue[reconcile.Request]) error {
	informer, err := s.Informers.GetInformer(ctx, templates.NewObject(binder.PriorityClassKind), cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(s.onPriorityClasses(queue))
	}
	if err != nil {
		return fmt.Errorf("watching PriorityClasses: %w", err)
	}
	return nil
}

// onPriorityClasses returns a handler that ignores the PriorityClasses of the initial list, because
// every template is reconciled at the start anyway.
func (s *Policies) onPriorityClasses(queue loop.Queue[reconcile.Request]) toolscache.ResourceEventHandler {
	enqueuePolicies := func(class *unstructured.Unstructured) {
		for _, p := range s.Catalog.WithPriorityClass(class.GetName()) {
			if policy.IsCluster(p) == s.Scope.IsCluster {
				loop.EnqueueLowPriority(queue, 0, RequestFor(p))
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
