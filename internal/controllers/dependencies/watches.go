package dependencies

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// dependencyWatches subscribes to the kinds of the dependencies in the index.
type dependencyWatches struct {
	manager    *watches.Manager
	references *referenceIndex
	log        logr.Logger

	queue          queue
	queueSet       chan struct{}
	updateRequests chan struct{}
	subscriptions  map[schema.GroupVersionKind]*watches.Subscription
}

func newDependencyWatches(manager *watches.Manager, references *referenceIndex, log logr.Logger) *dependencyWatches {
	return &dependencyWatches{
		manager: manager, references: references, log: log,
		queueSet: make(chan struct{}), updateRequests: make(chan struct{}, 1), subscriptions: map[schema.GroupVersionKind]*watches.Subscription{},
	}
}

// setQueue sets the queue. It is called as soon as the controller has a queue.
func (w *dependencyWatches) setQueue(q queue) {
	w.queue = q
	close(w.queueSet)
}

// requestUpdate makes run update the subscriptions.
func (w *dependencyWatches) requestUpdate() {
	select {
	case w.updateRequests <- struct{}{}:
	default: // an update is requested already
	}
}

// run updates the subscriptions until ctx ends, so that they match the kinds in the index.
func (w *dependencyWatches) run(ctx context.Context) error {
	defer func() {
		for kind := range w.subscriptions {
			w.unsubscribe(kind)
		}
	}()
	select {
	case <-w.queueSet:
	case <-ctx.Done():
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.updateRequests:
			w.update()
		}
	}
}

// update subscribes to the kinds that are needed, and unsubscribes from the others.
func (w *dependencyWatches) update() {
	needed := sets.New(w.references.kinds()...)
	for kind := range w.subscriptions {
		if !needed.Has(kind) {
			w.unsubscribe(kind)
		}
	}
	for kind := range needed {
		if w.subscriptions[kind] != nil {
			continue
		}
		added, err := w.manager.Subscribe(watches.ControlPlane, watches.Query{Kind: kind},
			watches.Subscriber{Handler: w.newDependencyHandler(kind)})
		if err != nil {
			w.log.Error(err, "Changes of dependencies are not watched", "kind", kind)
			continue
		}
		w.subscriptions[kind] = added
	}
}

func (w *dependencyWatches) unsubscribe(kind schema.GroupVersionKind) {
	w.subscriptions[kind].Close()
	delete(w.subscriptions, kind)
}

// newDependencyHandler returns a handler that queues the dependents of an object that is created,
// changed or deleted.
func (w *dependencyWatches) newDependencyHandler(kind schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return loop.Handlers[*unstructured.Unstructured]{
		Added: func(object *unstructured.Unstructured, isInitial bool) {
			w.enqueueDependents(isInitial, kind, object, object.GetLabels())
		},
		Updated: func(before, after *unstructured.Unstructured) {
			if policy.HasRelevantChange(before, after) {
				w.enqueueDependents(false, kind, after, before.GetLabels(), after.GetLabels())
			}
		},
		Deleted: func(lastKnown *unstructured.Unstructured) {
			w.enqueueDependents(false, kind, lastKnown, lastKnown.GetLabels())
		},
	}
}

// enqueueDependents queues the dependents of an object. Dependents of objects in the initial list
// get low priority, so that changes by users are handled first.
func (w *dependencyWatches) enqueueDependents(initial bool, kind schema.GroupVersionKind, object *unstructured.Unstructured,
	labels ...map[string]string) {
	id := dependency.ObjectID{
		Kind: kind.GroupKind(), Key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
	}
	for _, dependent := range w.references.dependents(id, labels...) {
		request := reconcile.Request{NamespacedName: dependent}
		if initial {
			loop.EnqueueLowPriority(w.queue, 0, request)
			continue
		}
		w.queue.Add(request)
	}
}
