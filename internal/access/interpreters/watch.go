package interpreters

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// ConfigurationKinds returns an empty object of each kind that configures rules.
func ConfigurationKinds() []client.Object {
	return []client.Object{&configv1alpha1.ResourceInterpreterCustomization{}, &configv1alpha1.ResourceInterpreterWebhookConfiguration{}}
}

// Watcher keeps the rules of an Interpreter equal to the configuration in the control plane. The
// manager starts its controllers after the Watcher has loaded the complete configuration.
type Watcher struct {
	rules  *Interpreter
	cache  cache.Cache
	loaded chan struct{}
}

var _ manager.Runnable = (*Watcher)(nil)

// NewWatcher returns a watcher that reads the configuration from a cache of the control plane.
func NewWatcher(rules *Interpreter, from cache.Cache) *Watcher {
	return &Watcher{rules: rules, cache: from, loaded: make(chan struct{})}
}

// Start implements manager.Runnable.
func (w *Watcher) Start(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	var synced []toolscache.InformerSynced
	for _, kind := range ConfigurationKinds() {
		informer, err := w.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(notifyOf(changed))
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	if err := w.rules.Load(ctx, w.cache); err != nil {
		return err
	}
	close(w.loaded)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			if err := w.rules.Load(ctx, w.cache); err != nil {
				return err
			}
		}
	}
}

// notifyOf returns a handler that puts an item into the channel for each event. Events are combined
// while the channel is full.
func notifyOf(changed chan<- struct{}) toolscache.ResourceEventHandler {
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	}
}

// GetCache returns a cache that is synced when the configuration is loaded. A manager waits for the
// caches of all runnables with this method before it starts controllers.
func (w *Watcher) GetCache() cache.Cache { return gatedCache{w.cache, w.loaded} }

type gatedCache struct {
	cache.Cache
	loaded <-chan struct{}
}

// WaitForCacheSync implements cache.Cache.
func (g gatedCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-g.loaded:
		return true
	case <-ctx.Done():
		return false
	}
}
