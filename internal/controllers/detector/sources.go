package detector

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/domain/policy"
)

// watch begins to watch the objects of a kind. The kind is known before its
// first object is queued.
func (d *detector) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	if _, err := d.reader.Watch(ctx, kind); err != nil {
		return err
	}
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
	if err := d.reader.Unwatch(ctx, kind); err != nil {
		d.log.Error(err, "Ending the watch of templates", "kind", kind)
		return
	}
	d.log.Info("Watches no templates of the kind any more", "kind", kind)
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
			if r := nameOf(kind, e.Object); e.IsInInitialList && !d.skips(r) {
				d.listed.add(r, e.Object.GetCreationTimestamp().Time)
			}
			d.noticed(kind, e.Object, policy.TemplateChanged, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*unstructured.Unstructured], q queue) {
			if policy.RelevantChange(e.ObjectOld, e.ObjectNew) && !d.echoed(kind, e.ObjectNew) {
				d.noticed(kind, e.ObjectNew, d.causeOf(e.ObjectOld, e.ObjectNew), q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*unstructured.Unstructured], q queue) {
			r := nameOf(kind, e.Object)
			d.claims.forget(r)
			d.echoes.forget(r)
			if !d.skips(r) {
				// The pass forgets the template, and no earlier one runs beside it.
				q.Add(request{reference: r, cause: policy.TemplateChanged})
			}
		},
	}
}

// echoed reports whether an update is the claim that we wrote ourselves, for a
// policy that has not changed since. The claim is known before the policy is
// looked at: a policy that changes later finds the template by it.
func (d *detector) echoed(kind schema.GroupVersionKind, template *unstructured.Unstructured) bool {
	r := nameOf(kind, template)
	p := d.echoes.take(r, template)
	if p == nil {
		return false
	}
	d.claims.observe(r, template)
	return d.policies.get(p.GetNamespace(), p.GetName()) == p
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
	return d.options.Propagated.Namespaces.Skips(r.kind, r.key.Namespace, r.key.Name)
}

func nameOf(kind schema.GroupVersionKind, object *unstructured.Unstructured) reference {
	return reference{kind: kind, key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
}

func blank(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
