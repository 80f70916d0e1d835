package detector

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// templateSource watches the objects of kinds and queues them. It implements kindWatcher.
type templateSource struct {
	manager *watches.Manager
	queue   *templateQueue
	watched *watchedKinds
	// isSkipped reports whether an object is never a template.
	isSkipped func(templateRef) bool
	catalog   *policyCatalog
	claims    *claimIndex
	writes    *writeTracker
	waiting   *waitingTemplates
	initial   *oldTemplates
	// awaitingObject contains the requests that wait for an override policy, and those that a quota refused.
	awaitingObject *waitingRequests
	log            logr.Logger
}

// Watch starts the watch of the objects of a kind. It adds the kind to the watched kinds before the
// first object of the kind is queued.
func (t *templateSource) Watch(kind schema.GroupVersionKind) error {
	var subscription *watches.Subscription
	t.watched.Add(kind, func() { subscription.Close() })
	var err error
	subscription, err = t.manager.Subscribe(watches.ControlPlane, watches.Query{Kind: kind},
		watches.Subscriber{Handler: t.newTemplateHandler(kind)})
	if err != nil {
		t.watched.Remove(kind)
	}
	return err
}

// Unwatch ends the watch of a kind.
func (t *templateSource) Unwatch(kind schema.GroupVersionKind) {
	t.watched.Stop(kind)
	t.waiting.deleteKind(kind)
	t.awaitingObject.deleteKind(kind)
	t.claims.deleteKind(kind)
	t.writes.deleteKind(kind)
	t.log.Info("Ended the watch of templates", "kind", kind)
}

// newTemplateHandler returns a handler that queues templates that are created, changed or deleted.
// Templates that existed before the watch have low priority, so that changes by users are
// reconciled first.
func (t *templateSource) newTemplateHandler(kind schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return loop.Handlers[*unstructured.Unstructured]{
		Added: func(template *unstructured.Unstructured, isInitial bool) {
			if r := refOf(kind, template); isInitial && !t.isSkipped(r) {
				t.initial.add(r, template.GetCreationTimestamp().Time)
			}
			t.enqueue(kind, template, policy.TemplateChanged, isInitial)
		},
		Updated: func(before, after *unstructured.Unstructured) {
			if policy.HasRelevantChange(before, after) && !t.isOwnClaimWrite(kind, after) {
				t.enqueue(kind, after, policy.CauseOfUpdate(before, after, t.catalog.get), false)
			}
		},
		Deleted: func(template *unstructured.Unstructured) {
			r := refOf(kind, template)
			t.claims.delete(r)
			t.writes.delete(r)
			if !t.isSkipped(r) {
				// The template is queued so that a reconcile stops tracking it. The handler itself
				// must not do this, because an earlier reconcile may still run and track the
				// template again.
				t.queue.add(r.request(policy.TemplateChanged))
			}
		},
	}
}

// isOwnClaimWrite reports whether an update is a claim that this process wrote, for a policy that
// has not changed since the write. It adds the claim to the index before it reads the policy from
// the catalog. If the policy changes after that, the reconcile of the policy therefore finds the
// template in the index.
func (t *templateSource) isOwnClaimWrite(kind schema.GroupVersionKind, template *unstructured.Unstructured) bool {
	r := refOf(kind, template)
	p := t.writes.take(r, template)
	if p == nil {
		return false
	}
	t.claims.update(r, template)
	return t.catalog.get(p.GetNamespace(), p.GetName()) == p
}

func (t *templateSource) enqueue(kind schema.GroupVersionKind, template *unstructured.Unstructured, cause policy.Trigger, isInitial bool) {
	r := refOf(kind, template)
	if t.isSkipped(r) {
		return
	}
	t.claims.update(r, template)
	if isInitial {
		t.queue.addLowPriority(cause, r)
		return
	}
	t.queue.add(r.request(cause))
}

// templateLister lists the objects of a kind from the cache.
type templateLister interface {
	ListCached(ctx context.Context, kind schema.GroupVersionKind) []*unstructured.Unstructured
}

// ruleSource queues the templates of a kind whose interpreter rules changed, because the replicas
// in their bindings may have to change.
type ruleSource struct {
	Rules     interpreter.Source
	templates templateLister
	watched   *watchedKinds
	// isSkipped reports whether an object is never a template.
	isSkipped func(templateRef) bool
}

// source returns the source for the controller of templates.
func (s *ruleSource) source() source.TypedSource[templateRequest] {
	return interpreters.NewSource(s.Rules, s.templatesOf)
}

// templatesOf returns requests for all templates whose kind is watched and changed. It includes
// templates without a claim, because a pass that runs now may be about to claim one of them.
func (s *ruleSource) templatesOf(ctx context.Context, changed interpreter.Kinds) []templateRequest {
	var requests []templateRequest
	for _, kind := range s.watched.Among(changed) {
		for _, object := range s.templates.ListCached(ctx, kind) {
			if r := refOf(kind, object); !s.isSkipped(r) {
				requests = append(requests, r.request(policy.RulesChanged))
			}
		}
	}
	return requests
}
