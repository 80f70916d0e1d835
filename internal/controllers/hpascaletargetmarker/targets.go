package hpascaletargetmarker

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/memberhpa"
	"karmada.io/karmada/internal/loop"
)

// targetWatches watches the templates of the kinds that HPAs scale, and of all propagated kinds that
// HPAs may have scaled before the start of the process.
type targetWatches struct {
	manager *watches.Manager
	rules   interpreter.Source
	scales  func(memberhpa.Target) (isScaled, isKnown bool)
	log     logr.Logger

	mu sync.Mutex
	// subscriptions contains all kinds that were requested. The value is nil for a kind without
	// interpreter rules.
	subscriptions map[schema.GroupVersionKind]*watches.Subscription
	queue         queue
}

func newTargetWatches(manager *watches.Manager, rules interpreter.Source, scales func(memberhpa.Target) (isScaled, isKnown bool),
	log logr.Logger) *targetWatches {
	return &targetWatches{
		manager: manager, rules: rules, scales: scales, log: log,
		subscriptions: map[schema.GroupVersionKind]*watches.Subscription{},
	}
}

// watch starts the watch of a kind that is not watched yet. It may be called by the handlers of other
// kinds.
func (w *targetWatches) watch(kind schema.GroupVersionKind, q queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = q
	if _, isRequested := w.subscriptions[kind]; !isRequested {
		w.subscribe(kind)
	}
}

// retryKinds watches the requested kinds that had no interpreter rules before. It queues nothing,
// because each new watch queues its templates.
func (w *targetWatches) retryKinds(context.Context, interpreter.Kinds) []memberhpa.Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, subscription := range w.subscriptions {
		if subscription == nil {
			w.subscribe(kind)
		}
	}
	return nil
}

// subscribe watches a kind if interpreter rules for it may use the label. A handler of HPAs calls it,
// so it must not subscribe to HPAs.
func (w *targetWatches) subscribe(kind schema.GroupVersionKind) {
	w.subscriptions[kind] = nil
	if rules := w.rules.Rules(kind); rules.Replicas == nil && rules.Retain == nil || kind == hpaKind {
		return
	}
	subscription, err := w.manager.Subscribe(watches.ControlPlane, watches.Query{Kind: kind},
		watches.Subscriber{Handler: w.newTemplateHandler(kind, w.queue)})
	if err != nil {
		w.log.Error(err, "Templates of a kind are not marked", "kind", kind)
		return
	}
	w.subscriptions[kind] = subscription
}

// closeWith ends all watches when ctx ends.
func (w *targetWatches) closeWith(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, subscription := range w.subscriptions {
			if subscription != nil {
				subscription.Close()
			}
		}
	})
}

// get returns a template, or nil if it does not exist or its kind is not watched. isKnown is false
// while the templates of the kind are being listed.
func (w *targetWatches) get(target memberhpa.Target) (template *unstructured.Unstructured, isKnown bool) {
	w.mu.Lock()
	subscription := w.subscriptions[target.Kind]
	w.mu.Unlock()
	if subscription == nil || subscription.State().Phase == watches.NotServed {
		return nil, true
	}
	return subscription.Get(types.NamespacedName{Namespace: target.Namespace, Name: target.Name})
}

// newTemplateHandler returns a handler that queues a template if its mark may be wrong.
func (w *targetWatches) newTemplateHandler(kind schema.GroupVersionKind, q queue) toolscache.ResourceEventHandler {
	return loop.Handlers[*unstructured.Unstructured]{
		Added: func(template *unstructured.Unstructured, isInitial bool) {
			target := memberhpa.Target{Kind: kind, Namespace: template.GetNamespace(), Name: template.GetName()}
			if isScaled, isKnown := w.scales(target); isScaled || !isKnown || memberhpa.HasOwnMark(template) {
				enqueue(q, target, isInitial)
			}
		},
		Updated: func(before, after *unstructured.Unstructured) {
			if !memberhpa.HasSameMark(before, after) {
				enqueue(q, memberhpa.Target{Kind: kind, Namespace: after.GetNamespace(), Name: after.GetName()}, false)
			}
		},
	}
}

// newBindingSource returns a source that watches the kinds of all propagated templates. An HPA may have
// been deleted while the process was not running, so no HPA names the kind of a marked template then.
func (r *reconciler) newBindingSource(informers cache.Cache) source.TypedSource[memberhpa.Target] {
	return source.TypedKind(informers, &workv1alpha2.ResourceBinding{}, handler.TypedFuncs[*workv1alpha2.ResourceBinding, memberhpa.Target]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*workv1alpha2.ResourceBinding], q queue) {
			resource := e.Object.Spec.Resource
			r.targets.watch(schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind), q)
		},
	})
}
