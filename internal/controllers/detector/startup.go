package detector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
)

// errNotSynced is returned when a handler does not receive the initial list in time.
var errNotSynced = errors.New("the initial list was not complete in time")

// handlerSync reports when an event handler has received all objects that existed at the
// start.
type handlerSync struct {
	name string
	// registered is closed once hasSynced is set.
	registered chan struct{}
	hasSynced  toolscache.InformerSynced
}

func newHandlerSync(name string) *handlerSync {
	return &handlerSync{name: name, registered: make(chan struct{})}
}

// watch starts watching a kind without waiting for its initial list.
func (v *handlerSync) watch(ctx context.Context, informers cache.Cache, object client.Object, handle toolscache.ResourceEventHandler) error {
	informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %s: %w", v.name, err)
	}
	registration, err := informer.AddEventHandler(handle)
	if err != nil {
		return fmt.Errorf("watching %s: %w", v.name, err)
	}
	v.hasSynced = registration.HasSynced
	close(v.registered)
	return nil
}

// waitForSync returns once the handler is in sync, or when the manager stops.
func (v *handlerSync) waitForSync(ctx context.Context) error {
	select {
	case <-v.registered:
		if toolscache.WaitForCacheSync(ctx.Done(), v.hasSynced) {
			return nil
		}
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return fmt.Errorf("watching %s: %w", v.name, errNotSynced)
}

// startupSource is the source with which the controller of templates starts. It provides the
// queue and delays the workers until all handlers are in sync. Unlike the sources of
// controller-runtime, it does not wait for every kind that the process watches: a kind that
// cannot be listed must not block the others.
type startupSource struct {
	detector     *detector
	handlerSyncs []*handlerSync
	queue        workqueue.TypedRateLimitingInterface[templateRequest]
	started      chan struct{}
}

func newStartupSource(d *detector, handlerSyncs []*handlerSync) *startupSource {
	return &startupSource{detector: d, handlerSyncs: handlerSyncs, started: make(chan struct{})}
}

// String names the source in logs.
func (e *startupSource) String() string { return "handlers of policies, overrides and bindings" }

// Start implements source.TypedSource.
func (e *startupSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[templateRequest]) error {
	e.queue = queue
	e.detector.initialTemplates.setStartTime(time.Now())
	close(e.started)
	kinds := []struct {
		name   string
		object client.Object
		handle toolscache.ResourceEventHandler
	}{
		{"OverridePolicies", &policyv1alpha1.OverridePolicy{}, e.onOverrides()},
		{"ClusterOverridePolicies", &policyv1alpha1.ClusterOverridePolicy{}, e.onOverrides()},
		{"ResourceBindings", &workv1alpha2.ResourceBinding{}, e.onBindings()},
		{"ClusterResourceBindings", &workv1alpha2.ClusterResourceBinding{}, e.onBindings()},
	}
	for _, kind := range kinds {
		v := newHandlerSync(kind.name)
		if err := v.watch(ctx, e.detector.cache, kind.object, kind.handle); err != nil {
			return err
		}
		e.handlerSyncs = append(e.handlerSyncs, v)
	}
	return nil
}

// WaitForSync implements source.TypedSyncingSource.
func (e *startupSource) WaitForSync(ctx context.Context) error {
	for _, v := range e.handlerSyncs {
		if err := v.waitForSync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitForQueue returns the queue as soon as the source has started.
func (e *startupSource) waitForQueue(ctx context.Context) (workqueue.TypedRateLimitingInterface[templateRequest], error) {
	select {
	case <-e.started:
		return e.queue, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// onOverrides queues the requests that wait for an override policy.
func (e *startupSource) onOverrides() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			created, ok := obj.(override.Object)
			if !ok {
				return
			}
			key := types.NamespacedName{Namespace: created.GetNamespace(), Name: created.GetName()}
			for _, r := range e.detector.waitingForOverride.take(key) {
				e.queue.Add(r)
			}
		},
	}
}

// onBindings queues the template of a deleted binding. An earlier binding may have blocked the
// name, or a user deleted a binding that is still needed. It also records changes of
// suspension as events.
func (e *startupSource) onBindings() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if added, ok := obj.(binding.Object); ok && !initial {
				e.detector.recordSuspensionEvent(nil, added)
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(binding.Object)
			newer, ok2 := after.(binding.Object)
			if ok && ok2 {
				e.detector.recordSuspensionEvent(older, newer)
			}
		},
		DeleteFunc: func(obj any) {
			deleted, ok := objectOfDelete(obj).(binding.Object)
			if !ok {
				return
			}
			e.queue.Add(templateRequest{templateRef: refFromBinding(&deleted.BindingSpec().Resource), cause: policy.TemplateChanged})
			for _, r := range e.detector.waitingForBinding.take(client.ObjectKeyFromObject(deleted)) {
				e.queue.Add(r)
			}
		},
	}
}

func refFromBinding(resource *workv1alpha2.ObjectReference) templateRef {
	return templateRef{
		kind: schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind),
		key:  types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name},
	}
}

func objectOfDelete(obj any) any {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}

// enqueueLowPriority queues an item behind all items of normal priority.
func enqueueLowPriority[T comparable](queue workqueue.TypedRateLimitingInterface[T], item T) {
	if prioritized, ok := queue.(priorityqueue.PriorityQueue[T]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, item)
		return
	}
	queue.Add(item)
}
