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

// watchKind starts watching the objects of a kind. The kind is in watchedKinds before its
// first object is queued.
func (d *detector) watchKind(ctx context.Context, kind schema.GroupVersionKind) error {
	if _, err := d.templateReader.Watch(ctx, kind); err != nil {
		return err
	}
	objects := &kindSource{kind: kind, inner: source.TypedKind(d.cache, newObject(kind), d.onTemplates(kind))}
	d.watchedKinds.add(kind, objects.stop)
	if err := d.templateController.Watch(objects); err != nil {
		d.watchedKinds.stop(kind)
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	return nil
}

// unwatchKind ends the watch of a kind, and the informer that all controllers of the process
// share.
func (d *detector) unwatchKind(ctx context.Context, kind schema.GroupVersionKind) {
	d.watchedKinds.stop(kind)
	d.waitingTemplates.deleteKind(kind)
	d.claims.deleteKind(kind)
	if err := d.templateReader.Unwatch(ctx, kind); err != nil {
		d.log.Error(err, "Ending the watch of templates", "kind", kind)
		return
	}
	d.log.Info("Ended the watch of templates", "kind", kind)
}

// kindSource is a source of one kind that can be stopped. The source of controller-runtime
// retries forever to list a kind that was removed before its first list.
type kindSource struct {
	kind   schema.GroupVersionKind
	inner  source.TypedSource[templateRequest]
	cancel context.CancelFunc
}

// String names the source in logs.
func (s *kindSource) String() string { return "templates of kind " + s.kind.String() }

// Start implements source.TypedSource.
func (s *kindSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[templateRequest]) error {
	ctx, s.cancel = context.WithCancel(ctx)
	return s.inner.Start(ctx, queue)
}

func (s *kindSource) stop() {
	if s.cancel != nil {
		s.cancel()
	}
}

// onTemplates queues templates that are created, changed or deleted.
func (d *detector) onTemplates(kind schema.GroupVersionKind) handler.TypedFuncs[*unstructured.Unstructured, templateRequest] {
	type queue = workqueue.TypedRateLimitingInterface[templateRequest]
	return handler.TypedFuncs[*unstructured.Unstructured, templateRequest]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*unstructured.Unstructured], q queue) {
			if r := refOf(kind, e.Object); e.IsInInitialList && !d.isSkipped(r) {
				d.initialTemplates.add(r, e.Object.GetCreationTimestamp().Time)
			}
			d.enqueueTemplate(kind, e.Object, policy.TemplateChanged, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*unstructured.Unstructured], q queue) {
			if policy.HasRelevantChange(e.ObjectOld, e.ObjectNew) && !d.isOwnClaimWrite(kind, e.ObjectNew) {
				d.enqueueTemplate(kind, e.ObjectNew, d.causeOfUpdate(e.ObjectOld, e.ObjectNew), q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*unstructured.Unstructured], q queue) {
			r := refOf(kind, e.Object)
			d.claims.delete(r)
			d.claimWrites.delete(r)
			if !d.isSkipped(r) {
				// The reconcile stops tracking the template. No earlier reconcile of it runs
				// at the same time.
				q.Add(templateRequest{templateRef: r, cause: policy.TemplateChanged})
			}
		},
	}
}

// isOwnClaimWrite reports whether an update is this process's own claim, for a policy that has
// not changed since. The claim is added to the index before the catalog is read. A policy that
// changes later finds the template by the index.
func (d *detector) isOwnClaimWrite(kind schema.GroupVersionKind, template *unstructured.Unstructured) bool {
	r := refOf(kind, template)
	p := d.claimWrites.take(r, template)
	if p == nil {
		return false
	}
	d.claims.update(r, template)
	return d.policies.get(p.GetNamespace(), p.GetName()) == p
}

// causeOfUpdate distinguishes a Lazy policy that takes a template over from another policy,
// which changes only our labels and annotations, from a change by a user.
func (d *detector) causeOfUpdate(before, after *unstructured.Unstructured) policy.Trigger {
	older, claimed := policy.ClaimedBy(before)
	newer, stillClaimed := policy.ClaimedBy(after)
	if !claimed || !stillClaimed || older == newer {
		return policy.TemplateChanged
	}
	p := d.policies.get(newer.Namespace, newer.Name)
	if p == nil || !policy.IsLazy(p) || policy.HasUserChange(before, after) {
		return policy.TemplateChanged
	}
	return policy.PolicyChanged
}

// enqueueTemplate queues a template. The queue that controller-runtime passes to a handler
// sets the priority.
func (d *detector) enqueueTemplate(kind schema.GroupVersionKind, template *unstructured.Unstructured, cause policy.Trigger, queue workqueue.TypedRateLimitingInterface[templateRequest]) {
	r := refOf(kind, template)
	if d.isSkipped(r) {
		return
	}
	d.claims.update(r, template)
	queue.Add(templateRequest{templateRef: r, cause: cause})
}

func (d *detector) isSkipped(r templateRef) bool {
	return d.options.Propagated.Namespaces.Skips(r.kind, r.key.Namespace, r.key.Name)
}

func refOf(kind schema.GroupVersionKind, object *unstructured.Unstructured) templateRef {
	return templateRef{kind: kind, key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
