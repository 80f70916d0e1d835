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
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/access/kinds"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/served"
)

const (
	// reviewInterval is how often discovery is asked for the kinds whose watch ends
	// here, and absencePatience how long it must say that a kind is absent.
	reviewInterval  = 10 * time.Second
	absencePatience = 5 * time.Second
)

// watches keep the kinds watched that occur as dependencies. Informers are shared
// with other controllers: we put handlers on them and take them off. One of a kind
// that is not served is ended here unless another controller looks after it, and one
// that another controller ended is requested again.
type watches struct {
	templates *template.Reader
	resolver  kinds.Discovery
	needs     *needs
	interval  time.Duration
	log       logr.Logger

	queue queue
	ready chan struct{}
	wake  chan struct{}

	open map[schema.GroupVersionKind]watch
	// states are those of all informers that were asked for here, also of kinds that
	// are not needed any longer.
	states   map[schema.GroupVersionKind]served.Watch
	reviewed time.Time
}

// watch is our handler on an informer.
type watch struct {
	informer     cache.Informer
	registration toolscache.ResourceEventHandlerRegistration
}

func newWatches(templates *template.Reader, resolver kinds.Discovery, needs *needs, interval time.Duration, log logr.Logger) *watches {
	return &watches{
		templates: templates, resolver: resolver, needs: needs, interval: interval, log: log,
		ready: make(chan struct{}), wake: make(chan struct{}, 1), open: map[schema.GroupVersionKind]watch{},
		states: map[schema.GroupVersionKind]served.Watch{},
	}
}

// opened hands over the queue as soon as there is one.
func (w *watches) opened(q queue) {
	w.queue = q
	close(w.ready)
}

// hurry asks for a look at the kinds right away.
func (w *watches) hurry() {
	select {
	case w.wake <- struct{}{}:
	default: // asked already
	}
}

// run keeps the watches in step with what is needed until ctx ends.
func (w *watches) run(ctx context.Context) error {
	select {
	case <-w.ready:
	case <-ctx.Done():
		return nil
	}
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-ticker.C:
		}
		w.look(ctx)
		w.review(ctx, time.Now())
	}
}

// look opens watches that are missing and closes those without need.
func (w *watches) look(ctx context.Context) {
	wanted := sets.New(w.needs.kinds()...)
	var unwanted, alive []schema.GroupVersionKind
	for kind, open := range w.open {
		switch {
		case !wanted.Has(kind):
			unwanted = append(unwanted, kind)
		case !open.informer.IsStopped():
			alive = append(alive, kind)
		}
	}
	for _, kind := range unwanted {
		w.close(kind)
	}
	for kind := range wanted.Delete(alive...) {
		if err := w.watch(ctx, kind); err != nil {
			w.log.Error(err, "Changes of dependencies are not seen yet", "kind", kind)
		}
	}
}

func (w *watches) close(kind schema.GroupVersionKind) {
	open := w.open[kind]
	delete(w.open, kind)
	if err := open.informer.RemoveEventHandler(open.registration); err != nil {
		w.log.Error(err, "Ending to follow dependencies", "kind", kind)
	}
}

// watch puts a handler on the informer of a kind, if it is served: an informer of
// a kind that is not would try for good.
func (w *watches) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	answer, err := kinds.Ask(w.resolver, kind)
	if err != nil {
		return err
	}
	if answer != served.Served {
		delete(w.open, kind)
		return nil
	}
	informer, err := w.templates.Follow(ctx, kind)
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(w.onObject(kind))
	if err != nil {
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	w.open[kind], w.states[kind] = watch{informer: informer, registration: registration}, served.Watch{}
	return nil
}

// review ends the watches of kinds that are not served. Another controller looks
// after most kinds, for which nothing is asked.
func (w *watches) review(ctx context.Context, now time.Time) {
	if now.Sub(w.reviewed) < reviewInterval {
		return
	}
	w.reviewed = now
	for kind, state := range w.states {
		if w.templates.Keeps(kind) {
			continue
		}
		answer, err := kinds.Ask(w.resolver, kind)
		if err != nil {
			w.log.V(2).Info("Cannot tell whether a kind of dependencies is served", "kind", kind, "cause", err)
		}
		next, step := state.Next(answer, now, absencePatience)
		w.states[kind] = next
		if step == served.End {
			w.end(ctx, kind)
		}
	}
}

// end ends the informer of a kind. look asks for another when the kind is served again.
func (w *watches) end(ctx context.Context, kind schema.GroupVersionKind) {
	if _, ok := w.open[kind]; ok {
		w.close(kind)
	}
	delete(w.states, kind)
	if err := w.templates.Unfollow(ctx, kind); err != nil {
		w.log.Error(err, "Ending the watch of a kind that is not served", "kind", kind)
		return
	}
	w.log.Info("Ended the watch of dependencies of a kind that is not served", "kind", kind)
}

// onObject looks at the dependents of an object that appears, changes or goes.
func (w *watches) onObject(kind schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if object, ok := obj.(*unstructured.Unstructured); ok {
				w.push(initial, kind, object, object.GetLabels())
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(*unstructured.Unstructured)
			newer, ok2 := after.(*unstructured.Unstructured)
			if ok && ok2 && policy.RelevantChange(older, newer) {
				w.push(false, kind, newer, older.GetLabels(), newer.GetLabels())
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if object, ok := obj.(*unstructured.Unstructured); ok {
				w.push(false, kind, object, object.GetLabels())
			}
		},
	}
}

// push queues the dependents of an object, those of the initial list behind what
// users do meanwhile.
func (w *watches) push(initial bool, kind schema.GroupVersionKind, object *unstructured.Unstructured, marks ...map[string]string) {
	thing := dependency.Thing{
		Kind: kind.GroupKind(), Key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
	}
	for _, dependent := range w.needs.dependents(thing, marks...) {
		request := reconcile.Request{NamespacedName: dependent}
		if ranked, ok := w.queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok && initial {
			ranked.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request)
			continue
		}
		w.queue.Add(request)
	}
}
