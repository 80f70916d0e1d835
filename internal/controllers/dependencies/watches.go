package dependencies

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/access/kinds"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/servedkinds"
	"karmada.io/karmada/internal/loop"
)

const (
	// reviewInterval is the interval at which the controller asks discovery about kinds whose
	// informer it may end. absenceGracePeriod is how long a kind must be absent before the
	// controller ends its informer.
	reviewInterval     = 10 * time.Second
	absenceGracePeriod = 5 * time.Second
)

// watches ensures that the kinds of dependencies are watched. It adds event handlers to informers,
// and removes handlers that are no longer needed. The informers are shared with other controllers.
// watches ends the informer of a kind that is not served, unless another controller manages the
// watch of the kind. If another controller ended an informer, watches requests it again.
type watches struct {
	templates  *template.Reader
	discovery  kinds.Discovery
	references *referenceIndex
	interval   time.Duration
	log        logr.Logger

	queue          queue
	queueSet       chan struct{}
	updateRequests chan struct{}

	handlers map[schema.GroupVersionKind]handlerRegistration
	// servedStates contains the state of each informer that this package requested, including those
	// of kinds that are no longer needed.
	servedStates map[schema.GroupVersionKind]servedkinds.WatchState
	lastReview   time.Time
}

// handlerRegistration is the event handler of this controller on an informer.
type handlerRegistration struct {
	informer     cache.Informer
	registration toolscache.ResourceEventHandlerRegistration
}

func newWatches(templates *template.Reader, discovery kinds.Discovery, references *referenceIndex, interval time.Duration, log logr.Logger) *watches {
	return &watches{
		templates: templates, discovery: discovery, references: references, interval: interval, log: log,
		queueSet: make(chan struct{}), updateRequests: make(chan struct{}, 1), handlers: map[schema.GroupVersionKind]handlerRegistration{},
		servedStates: map[schema.GroupVersionKind]servedkinds.WatchState{},
	}
}

// setQueue sets the queue. It is called as soon as the controller has a queue.
func (w *watches) setQueue(q queue) {
	w.queue = q
	close(w.queueSet)
}

// requestUpdate makes run update the watches immediately.
func (w *watches) requestUpdate() {
	select {
	case w.updateRequests <- struct{}{}:
	default: // an update is requested already
	}
}

// run updates the watches until ctx ends, so that they match the kinds in the index.
func (w *watches) run(ctx context.Context) error {
	select {
	case <-w.queueSet:
	case <-ctx.Done():
		return nil
	}
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.updateRequests:
		case <-ticker.C:
		}
		w.update(ctx)
		w.removeUnserved(ctx, time.Now())
	}
}

// update adds missing handlers and removes unneeded ones.
func (w *watches) update(ctx context.Context) {
	needed := sets.New(w.references.kinds()...)
	var unneeded, running []schema.GroupVersionKind
	for kind, open := range w.handlers {
		switch {
		case !needed.Has(kind):
			unneeded = append(unneeded, kind)
		case !open.informer.IsStopped():
			running = append(running, kind)
		}
	}
	for _, kind := range unneeded {
		w.removeHandler(kind)
	}
	for kind := range needed.Delete(running...) {
		if err := w.addHandler(ctx, kind); err != nil {
			w.log.Error(err, "Changes of dependencies are not watched yet", "kind", kind)
		}
	}
}

func (w *watches) removeHandler(kind schema.GroupVersionKind) {
	open := w.handlers[kind]
	delete(w.handlers, kind)
	if err := open.informer.RemoveEventHandler(open.registration); err != nil {
		w.log.Error(err, "Removing the handler of dependencies", "kind", kind)
	}
}

// addHandler adds a handler to the informer of a kind if the kind is served. It does nothing for a
// kind that is not served, because the informer would retry forever.
func (w *watches) addHandler(ctx context.Context, kind schema.GroupVersionKind) error {
	answer, err := kinds.Lookup(w.discovery, kind)
	if err != nil {
		return err
	}
	if answer != servedkinds.Served {
		delete(w.handlers, kind)
		return nil
	}
	informer, err := w.templates.WatchTemporarily(ctx, kind)
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(w.onObject(kind))
	if err != nil {
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	w.handlers[kind], w.servedStates[kind] = handlerRegistration{informer: informer, registration: registration}, servedkinds.WatchState{}
	return nil
}

// removeUnserved ends the informers of kinds that are not served. It skips kinds that another
// controller watches permanently, which are most kinds.
func (w *watches) removeUnserved(ctx context.Context, now time.Time) {
	if now.Sub(w.lastReview) < reviewInterval {
		return
	}
	w.lastReview = now
	for kind, state := range w.servedStates {
		if w.templates.IsWatchedPermanently(kind) {
			continue
		}
		answer, err := kinds.Lookup(w.discovery, kind)
		if err != nil {
			w.log.V(2).Info("Discovery of a kind of dependencies failed", "kind", kind, "cause", err)
		}
		next, step := state.Next(answer, now, absenceGracePeriod)
		w.servedStates[kind] = next
		if step == servedkinds.StopWatch {
			w.removeInformer(ctx, kind)
		}
	}
}

// removeInformer ends the informer of a kind. update requests a new informer when the kind is
// served again.
func (w *watches) removeInformer(ctx context.Context, kind schema.GroupVersionKind) {
	if _, ok := w.handlers[kind]; ok {
		w.removeHandler(kind)
	}
	delete(w.servedStates, kind)
	if err := w.templates.UnwatchTemporary(ctx, kind); err != nil {
		w.log.Error(err, "Ending the watch of a kind that is not served", "kind", kind)
		return
	}
	w.log.Info("Ended the watch of dependencies of a kind that is not served", "kind", kind)
}

// onObject queues the dependents of an object that is created, changed or deleted.
func (w *watches) onObject(kind schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return loop.Handlers[*unstructured.Unstructured]{
		Added: func(object *unstructured.Unstructured, isInInitialList bool) {
			w.enqueueDependents(isInInitialList, kind, object, object.GetLabels())
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
func (w *watches) enqueueDependents(initial bool, kind schema.GroupVersionKind, object *unstructured.Unstructured, labels ...map[string]string) {
	thing := dependency.ObjectID{
		Kind: kind.GroupKind(), Key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
	}
	for _, dependent := range w.references.dependents(thing, labels...) {
		request := reconcile.Request{NamespacedName: dependent}
		if initial {
			loop.EnqueueLowPriority(w.queue, 0, request)
			continue
		}
		w.queue.Add(request)
	}
}
