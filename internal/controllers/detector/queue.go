package detector

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// templateQueue is the queue of templates. It is opened when the controller of templates starts. Before
// that, the methods that add requests must not be called.
type templateQueue struct {
	inner  loop.Queue[templateRequest]
	opened chan struct{}
}

// newTemplateQueue returns a queue that is not open yet.
func newTemplateQueue() *templateQueue { return &templateQueue{opened: make(chan struct{})} }

// open sets the queue of the controller. It must be called only once.
func (q *templateQueue) open(inner loop.Queue[templateRequest]) {
	q.inner = inner
	close(q.opened)
}

// isOpen reports whether the queue was opened.
func (q *templateQueue) isOpen() bool {
	select {
	case <-q.opened:
		return true
	default:
		return false
	}
}

// waitUntilOpen returns when the queue is open. It returns an error if ctx ends earlier.
func (q *templateQueue) waitUntilOpen(ctx context.Context) error {
	select {
	case <-q.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add queues requests.
func (q *templateQueue) add(requests ...templateRequest) {
	for _, request := range requests {
		q.inner.Add(request)
	}
}

// addAfter queues a request after a delay.
func (q *templateQueue) addAfter(request templateRequest, delay time.Duration) {
	q.inner.AddAfter(request, delay)
}

// addLowPriority queues templates that a change of a policy affects. They are queued behind the
// changes by users.
func (q *templateQueue) addLowPriority(cause policy.Trigger, references ...templateRef) {
	for _, r := range references {
		loop.EnqueueLowPriority(q.inner, 0, r.request(cause))
	}
}

// templateRef identifies a template.
type templateRef struct {
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
}

// refOf returns the reference of an object of a kind.
func refOf(kind schema.GroupVersionKind, object metav1.Object) templateRef {
	return newRef(kind, object.GetNamespace(), object.GetName())
}

// refFromBinding returns the reference of the template of a binding.
func refFromBinding(resource *workv1alpha2.ObjectReference) templateRef {
	return newRef(schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind), resource.Namespace, resource.Name)
}

// newRef returns the reference of a template. The namespace of a cluster-scoped template is
// empty.
func newRef(kind schema.GroupVersionKind, namespace, name string) templateRef {
	return templateRef{Kind: kind, Key: types.NamespacedName{Namespace: namespace, Name: name}}
}

// String returns the kind, namespace and name for messages.
func (r templateRef) String() string { return r.Kind.Kind + " " + r.Key.String() }

// stub returns an object that has only the fields that selectors match.
func (r templateRef) stub(templateLabels labels.Set) *unstructured.Unstructured {
	object := newObject(r.Kind)
	object.SetNamespace(r.Key.Namespace)
	object.SetName(r.Key.Name)
	object.SetLabels(templateLabels)
	return object
}

// newObject returns an empty object of a kind.
func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// templateRequest is a request to reconcile a template. The same template may be queued twice, once for
// each cause.
type templateRequest struct {
	Template templateRef
	Cause    policy.Trigger
}

// templateRequest returns the request to reconcile the template for a cause.
func (r templateRef) request(cause policy.Trigger) templateRequest {
	return templateRequest{Template: r, Cause: cause}
}
