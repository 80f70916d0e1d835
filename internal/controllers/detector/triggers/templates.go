package triggers

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/controllers/detector/catalog"
	"karmada.io/karmada/internal/controllers/detector/claims"
	"karmada.io/karmada/internal/controllers/detector/kinds"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/controllers/detector/waiting"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// KindReader starts and ends the watch of a kind. While a kind is watched, its objects can be read
// from the cache.
type KindReader interface {
	Watch(ctx context.Context, kind schema.GroupVersionKind) (cache.Informer, error)
	Unwatch(ctx context.Context, kind schema.GroupVersionKind) error
}

// Templates watches the objects of kinds and queues them. It implements kinds.Watches.
type Templates struct {
	Reader KindReader
	Cache  cache.Cache
	// AddSource adds a source to the controller of templates.
	AddSource func(source.TypedSource[templates.Request]) error
	Watched   *kinds.Watched
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
func (t *Templates) Watch(ctx context.Context, kind schema.GroupVersionKind) error {
	if _, err := t.Reader.Watch(ctx, kind); err != nil {
		return err
	}
	objects := &kindSource{kind: kind, inner: source.TypedKind(t.Cache, templates.NewObject(kind), t.OnTemplates(kind))}
	t.Watched.Add(kind, objects.stop)
	if err := t.AddSource(objects); err != nil {
		t.Watched.Stop(kind)
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	return nil
}

// Unwatch ends the watch of a kind. It also ends the informer of the kind, which all controllers of
// the process share.
func (t *Templates) Unwatch(ctx context.Context, kind schema.GroupVersionKind) {
	t.Watched.Stop(kind)
	t.Waiting.DeleteKind(kind)
	t.Claims.DeleteKind(kind)
	if err := t.Reader.Unwatch(ctx, kind); err != nil {
		t.Log.Error(err, "Ending the watch of templates", "kind", kind)
		return
	}
	t.Log.Info("Ended the watch of templates", "kind", kind)
}

// kindSource is a source for one kind that can be stopped. It must be stopped when the kind is
// removed, because the source of controller-runtime retries the first list of a kind forever.
type kindSource struct {
	kind   schema.GroupVersionKind
	inner  source.TypedSource[templates.Request]
	cancel context.CancelFunc
}

// String names the source in logs.
func (k *kindSource) String() string { return "templates of kind " + k.kind.String() }

// Start implements source.TypedSource.
func (k *kindSource) Start(ctx context.Context, queue loop.Queue[templates.Request]) error {
	ctx, k.cancel = context.WithCancel(ctx)
	return k.inner.Start(ctx, queue)
}

func (k *kindSource) stop() {
	if k.cancel != nil {
		k.cancel()
	}
}

// OnTemplates queues templates that are created, changed or deleted.
func (t *Templates) OnTemplates(kind schema.GroupVersionKind) handler.TypedFuncs[*unstructured.Unstructured, templates.Request] {
	type queue = loop.Queue[templates.Request]
	return handler.TypedFuncs[*unstructured.Unstructured, templates.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*unstructured.Unstructured], q queue) {
			if r := templates.RefOf(kind, e.Object); e.IsInInitialList && !t.IsSkipped(r) {
				t.Initial.Add(r, e.Object.GetCreationTimestamp().Time)
			}
			t.enqueue(kind, e.Object, policy.TemplateChanged, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*unstructured.Unstructured], q queue) {
			if policy.HasRelevantChange(e.ObjectOld, e.ObjectNew) && !t.isOwnClaimWrite(kind, e.ObjectNew) {
				t.enqueue(kind, e.ObjectNew, policy.CauseOfUpdate(e.ObjectOld, e.ObjectNew, t.Catalog.Get), q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*unstructured.Unstructured], q queue) {
			r := templates.RefOf(kind, e.Object)
			t.Claims.Delete(r)
			t.Writes.Delete(r)
			if !t.IsSkipped(r) {
				// The template is queued so that a reconcile stops tracking it. The handler itself
				// must not do this, because an earlier reconcile may still run and track the
				// template again.
				q.Add(r.Request(policy.TemplateChanged))
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

// enqueue adds a template to the queue that controller-runtime passes to a handler, because that
// queue sets the priority.
func (t *Templates) enqueue(kind schema.GroupVersionKind, template *unstructured.Unstructured, cause policy.Trigger, queue loop.Queue[templates.Request]) {
	r := templates.RefOf(kind, template)
	if t.IsSkipped(r) {
		return
	}
	t.Claims.Update(r, template)
	queue.Add(r.Request(cause))
}
