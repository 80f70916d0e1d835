package detector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/domain/policy"
)

// definitions are the kinds whose objects define other kinds. They are templates
// as well, so that watching them unstructured costs no second watch.
var definitions = [...]schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
}

// settling is when to look after a definition changed: the server takes a moment
// to serve what it accepted, and says nothing when it does.
var settling = [...]time.Duration{200 * time.Millisecond, time.Second, 4 * time.Second}

// discoveryRetry is when to ask a server again that did not answer.
const discoveryRetry = time.Second

// discover keeps the watched kinds in step with the served ones. It begins when
// the controller of templates watches already, for what is watched from the
// start has to be complete before any work begins.
func (d *detector) discover(ctx context.Context) error {
	if _, err := d.entrance.open(ctx); err != nil {
		return nil // the manager ends
	}
	d.watchDefinitions(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	pace := pace{interval: d.options.DiscoveryInterval}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.definitions:
			if pace.hurry() {
				timer.Reset(pace.next())
			}
		case <-timer.C:
			if !d.look(ctx) {
				timer.Reset(min(discoveryRetry, pace.interval))
				continue
			}
			pace.looked()
			timer.Reset(pace.next())
		}
	}
}

// pace says when to look for kinds again: at intervals, and a few times after
// definitions changed.
type pace struct {
	interval time.Duration
	step     int
	hurried  bool
	pending  bool
}

// hurry notes a change of definitions and reports whether to look sooner. A
// steady stream of changes does not keep putting off the look.
func (p *pace) hurry() bool {
	p.step, p.hurried = 0, true
	if p.pending {
		return false
	}
	p.pending = true
	return true
}

// looked notes that the look for pending changes is done.
func (p *pace) looked() {
	p.pending = false
	if p.hurried {
		p.step++
	}
	if p.step >= len(settling) {
		p.step, p.hurried = 0, false
	}
}

// next is how long to wait for the next look.
func (p *pace) next() time.Duration {
	if p.hurried {
		return min(settling[p.step], p.interval)
	}
	return p.interval
}

// watchDefinitions tells of every change of what defines kinds. Where they are
// not served, the intervals have to do.
func (d *detector) watchDefinitions(ctx context.Context) {
	changed := func() {
		select {
		case d.definitions <- struct{}{}:
		default: // told already
		}
	}
	for _, kind := range definitions {
		informer, err := d.cache.GetInformer(ctx, blank(kind), cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { changed() },
				UpdateFunc: func(any, any) { changed() },
				DeleteFunc: func(any) { changed() },
			})
		}
		if err != nil {
			d.log.Error(err, "New kinds are found at intervals only", "definitions", kind.Kind, "interval", d.options.DiscoveryInterval)
		}
	}
}

// look lists the served kinds, watches new ones and ends the watches of those
// that are gone. Groups that cannot be listed leave everything as it is. It
// reports whether the server answered.
func (d *detector) look(ctx context.Context) bool {
	lists, err := d.resolver.ServerPreferredResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		d.log.Error(err, "Listing the served kinds")
		return false
	}
	if partial != nil {
		d.log.Info("Some groups cannot be listed", "groups", partial.Groups)
	}
	served := watchable(d.options.SkippedAPIs, lists)
	added, gone := d.kinds.compare(served, err == nil, time.Now(), d.options.DiscoveryInterval)
	for _, kind := range added {
		if err := d.watch(kind); err != nil {
			d.log.Error(err, "Watching templates", "kind", kind)
		}
	}
	for _, kind := range gone {
		d.unwatch(ctx, kind)
	}
	return true
}

// watch begins to watch the objects of a kind. The kind is known before its
// first object is queued.
func (d *detector) watch(kind schema.GroupVersionKind) error {
	watching := &kindSource{kind: kind, inner: source.TypedKind(d.cache, blank(kind), d.onTemplates(kind))}
	d.kinds.add(kind, watching.stop)
	if err := d.templates.Watch(watching); err != nil {
		d.kinds.drop(kind)
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	return nil
}

// unwatch ends the watch of a kind, and with it the informer that all
// controllers of the process share.
func (d *detector) unwatch(ctx context.Context, kind schema.GroupVersionKind) {
	d.kinds.drop(kind)
	d.waiting.dropKind(kind)
	d.claims.dropKind(kind)
	if err := d.cache.RemoveInformer(ctx, blank(kind)); err != nil {
		d.log.Error(err, "Ending the watch of templates", "kind", kind)
	}
}

// kindSource is the source of one kind, which can be stopped. The library's own
// keeps trying, for good, to list a kind that is gone before it was listed.
type kindSource struct {
	kind   schema.GroupVersionKind
	inner  source.TypedSource[request]
	cancel context.CancelFunc
}

// String names the source in logs.
func (s *kindSource) String() string { return "templates of kind " + s.kind.String() }

// Start implements source.TypedSource.
func (s *kindSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	ctx, s.cancel = context.WithCancel(ctx)
	return s.inner.Start(ctx, queue)
}

func (s *kindSource) stop() {
	if s.cancel != nil {
		s.cancel()
	}
}

// onTemplates queues templates that appear, change or go.
func (d *detector) onTemplates(kind schema.GroupVersionKind) handler.TypedFuncs[*unstructured.Unstructured, request] {
	type queue = workqueue.TypedRateLimitingInterface[request]
	return handler.TypedFuncs[*unstructured.Unstructured, request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*unstructured.Unstructured], q queue) {
			d.noticed(kind, e.Object, policy.TemplateChanged, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*unstructured.Unstructured], q queue) {
			if policy.RelevantChange(e.ObjectOld, e.ObjectNew) {
				d.noticed(kind, e.ObjectNew, d.causeOf(e.ObjectOld, e.ObjectNew), q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*unstructured.Unstructured], q queue) {
			r := nameOf(kind, e.Object)
			d.claims.forget(r)
			if !d.skips(r) {
				// The pass forgets the template, and no earlier one runs beside it.
				q.Add(request{reference: r, cause: policy.TemplateChanged})
			}
		},
	}
}

// causeOf tells a Lazy policy that takes a template over from another policy,
// which only changes our own marks, from a change by a user.
func (d *detector) causeOf(before, after *unstructured.Unstructured) policy.Cause {
	older, claimed := policy.ClaimedBy(before)
	newer, taken := policy.ClaimedBy(after)
	if !claimed || !taken || older == newer {
		return policy.TemplateChanged
	}
	p := d.policies.get(newer.Namespace, newer.Name)
	if p == nil || !policy.IsLazy(p) || policy.UserChange(before, after) {
		return policy.TemplateChanged
	}
	return policy.PolicyChanged
}

// noticed queues a template. The queue that the library hands to a handler knows
// the priority.
func (d *detector) noticed(kind schema.GroupVersionKind, template *unstructured.Unstructured, cause policy.Cause, queue workqueue.TypedRateLimitingInterface[request]) {
	r := nameOf(kind, template)
	if d.skips(r) {
		return
	}
	d.claims.observe(r, template)
	queue.Add(request{reference: r, cause: cause})
}

func (d *detector) skips(r reference) bool {
	return d.options.SkippedNamespaces.Skips(r.kind, r.key.Namespace, r.key.Name)
}

func nameOf(kind schema.GroupVersionKind, object *unstructured.Unstructured) reference {
	return reference{kind: kind, key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
}

func blank(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
