package triggers

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/controllers/detector/catalog"
	"karmada.io/karmada/internal/controllers/detector/claims"
	"karmada.io/karmada/internal/controllers/detector/kinds"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/controllers/detector/waiting"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// Templates watches the objects of kinds and queues them. It implements kinds.Watches.
type Templates struct {
	Manager *watches.Manager
	Queue   *templates.Queue
	Watched *kinds.Watched
	// IsSkipped reports whether an object is never a template.
	IsSkipped func(templates.Ref) bool
	Catalog   *catalog.Catalog
	Claims    *claims.Index
	Writes    *claims.WriteTracker
	Waiting   *waiting.Templates
	Initial   *waiting.Initial
	Log       logr.Logger
}

// Watch starts the watch of the objects of a kind. It adds the kind to Watched before the first
// object of the kind is queued.
func (t *Templates) Watch(kind schema.GroupVersionKind) error {
	var subscription *watches.Subscription
	t.Watched.Add(kind, func() { subscription.Close() })
	var err error
	subscription, err = t.Manager.Subscribe(watches.ControlPlane, watches.Query{Kind: kind}, watches.Subscriber{Handler: t.OnTemplates(kind)})
	if err != nil {
		t.Watched.Remove(kind)
	}
	return err
}

// Unwatch ends the watch of a kind.
func (t *Templates) Unwatch(kind schema.GroupVersionKind) {
	t.Watched.Stop(kind)
	t.Waiting.DeleteKind(kind)
	t.Claims.DeleteKind(kind)
	t.Log.Info("Ended the watch of templates", "kind", kind)
}

// OnTemplates queues templates that are created, changed or deleted. Templates that existed before
// the watch have low priority, so that changes by users are reconciled first.
func (t *Templates) OnTemplates(kind schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return loop.Handlers[*unstructured.Unstructured]{
		Added: func(template *unstructured.Unstructured, isInitial bool) {
			if r := templates.RefOf(kind, template); isInitial && !t.IsSkipped(r) {
				t.Initial.Add(r, template.GetCreationTimestamp().Time)
			}
			t.enqueue(kind, template, policy.TemplateChanged, isInitial)
		},
		Updated: func(before, after *unstructured.Unstructured) {
			if policy.HasRelevantChange(before, after) && !t.isOwnClaimWrite(kind, after) {
				t.enqueue(kind, after, policy.CauseOfUpdate(before, after, t.Catalog.Get), false)
			}
		},
		Deleted: func(template *unstructured.Unstructured) {
			r := templates.RefOf(kind, template)
			t.Claims.Delete(r)
			t.Writes.Delete(r)
			if !t.IsSkipped(r) {
				// The template is queued so that a reconcile stops tracking it. The handler itself
				// must not do this, because an earlier reconcile may still run and track the
				// template again.
				t.Queue.Add(r.Request(policy.TemplateChanged))
			}
		},
	}
}

// isOwnClaimWrite reports whether an update is a claim that this process wrote, for a policy that
// has not changed since the write. It adds the claim to the index before it reads the policy from
// the catalog. If the policy changes after that, the reconcile of the policy therefore finds the
// template in the index.
func (t *Templates) isOwnClaimWrite(kind schema.GroupVersionKind, template *unstructured.Unstructured) bool {
	r := templates.RefOf(kind, template)
	p := t.Writes.Take(r, template)
	if p == nil {
		return false
	}
	t.Claims.Update(r, template)
	return t.Catalog.Get(p.GetNamespace(), p.GetName()) == p
}

func (t *Templates) enqueue(kind schema.GroupVersionKind, template *unstructured.Unstructured, cause policy.Trigger, isInitial bool) {
	r := templates.RefOf(kind, template)
	if t.IsSkipped(r) {
		return
	}
	t.Claims.Update(r, template)
	if isInitial {
		t.Queue.AddLowPriority(cause, r)
		return
	}
	t.Queue.Add(r.Request(cause))
}
