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

// errIncomplete says that a view was not complete in time.
var errIncomplete = errors.New("the view did not become complete")

// view tells when a handler has seen everything that there was at the start.
type view struct {
	name string
	// ready is closed once synced is set.
	ready  chan struct{}
	synced toolscache.InformerSynced
}

func newView(name string) *view { return &view{name: name, ready: make(chan struct{})} }

// open starts watching a kind without waiting for it.
func (v *view) open(ctx context.Context, from cache.Cache, object client.Object, handle toolscache.ResourceEventHandler) error {
	informer, err := from.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %s: %w", v.name, err)
	}
	registration, err := informer.AddEventHandler(handle)
	if err != nil {
		return fmt.Errorf("watching %s: %w", v.name, err)
	}
	v.synced = registration.HasSynced
	close(v.ready)
	return nil
}

// wait returns once the view is complete, or when the manager ends.
func (v *view) wait(ctx context.Context) error {
	select {
	case <-v.ready:
		if toolscache.WaitForCacheSync(ctx.Done(), v.synced) {
			return nil
		}
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return fmt.Errorf("watching %s: %w", v.name, errIncomplete)
}

// entrance is the source that the controller of templates starts with. It hands
// out the queue and keeps the workers from starting before all views are
// complete. Unlike the sources of the library it does not wait for every kind
// that the process watches: a kind of a user that cannot be listed must not keep
// the others waiting.
type entrance struct {
	detector *detector
	views    []*view
	queue    workqueue.TypedRateLimitingInterface[request]
	opened   chan struct{}
}

func newEntrance(d *detector, views []*view) *entrance {
	return &entrance{detector: d, views: views, opened: make(chan struct{})}
}

// String names the source in logs.
func (e *entrance) String() string { return "views of policies, overrides and bindings" }

// Start implements source.TypedSource.
func (e *entrance) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	e.queue = queue
	e.detector.listed.start(time.Now())
	close(e.opened)
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
		v := newView(kind.name)
		if err := v.open(ctx, e.detector.cache, kind.object, kind.handle); err != nil {
			return err
		}
		e.views = append(e.views, v)
	}
	return nil
}

// WaitForSync implements source.TypedSyncingSource.
func (e *entrance) WaitForSync(ctx context.Context) error {
	for _, v := range e.views {
		if err := v.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open returns the queue as soon as there is one.
func (e *entrance) open(ctx context.Context) (workqueue.TypedRateLimitingInterface[request], error) {
	select {
	case <-e.opened:
		return e.queue, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// onOverrides wakes what waits for an override policy.
func (e *entrance) onOverrides() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			appeared, ok := obj.(override.Object)
			if !ok {
				return
			}
			key := types.NamespacedName{Namespace: appeared.GetNamespace(), Name: appeared.GetName()}
			for _, r := range e.detector.overrides.take(key) {
				e.queue.Add(r)
			}
		},
	}
}

// onBindings looks at the template of a binding that is gone: an earlier binding
// may have been in the way of a new one, or somebody deleted what is still
// needed. It also reports what is suspended.
func (e *entrance) onBindings() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if added, ok := obj.(binding.Object); ok && !initial {
				e.detector.reportSuspension(nil, added)
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok := before.(binding.Object)
			newer, ok2 := after.(binding.Object)
			if ok && ok2 {
				e.detector.reportSuspension(older, newer)
			}
		},
		DeleteFunc: func(obj any) {
			gone, ok := final(obj).(binding.Object)
			if !ok {
				return
			}
			e.queue.Add(request{reference: referenceOf(&gone.BindingSpec().Resource), cause: policy.TemplateChanged})
			for _, r := range e.detector.holders.take(client.ObjectKeyFromObject(gone)) {
				e.queue.Add(r)
			}
		},
	}
}

func referenceOf(resource *workv1alpha2.ObjectReference) reference {
	return reference{
		kind: schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind),
		key:  types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name},
	}
}

func final(obj any) any {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}

// addLow queues behind everything that is not low.
func addLow[T comparable](queue workqueue.TypedRateLimitingInterface[T], item T) {
	if prioritized, ok := queue.(priorityqueue.PriorityQueue[T]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, item)
		return
	}
	queue.Add(item)
}
