package detector

import (
	"context"
	"errors"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errNotSynced is returned when a handler does not receive the initial list in time.
var errNotSynced = errors.New("the initial list was not complete in time")

// informers provides the informers of a cache.
type informers interface {
	GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
}

// handlerSync reports when an event handler has received all objects that existed at the
// start.
type handlerSync struct {
	name string
	// registered is closed once hasSynced is set.
	registered chan struct{}
	hasSynced  toolscache.InformerSynced
}

// newHandlerSync returns the state of a handler that is not registered yet. name is the plural of
// the kind, for messages.
func newHandlerSync(name string) *handlerSync {
	return &handlerSync{name: name, registered: make(chan struct{})}
}

// watch starts the watch of a kind without waiting for its initial list.
func (h *handlerSync) watch(ctx context.Context, informers informers, object client.Object, handle toolscache.ResourceEventHandler) error {
	informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %s: %w", h.name, err)
	}
	registration, err := informer.AddEventHandler(handle)
	if err != nil {
		return fmt.Errorf("watching %s: %w", h.name, err)
	}
	h.hasSynced = registration.HasSynced
	close(h.registered)
	return nil
}

// waitForSync waits until the handler is in sync. It also returns when the manager stops.
func (h *handlerSync) waitForSync(ctx context.Context) error {
	select {
	case <-h.registered:
		if toolscache.WaitForCacheSync(ctx.Done(), h.hasSynced) {
			return nil
		}
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return fmt.Errorf("watching %s: %w", h.name, errNotSynced)
}
