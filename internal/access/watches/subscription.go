package watches

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// Objects reads the objects of a watch. All objects are shared and must not be changed.
type Objects struct{ watch *sharedWatch }

// Get returns an object. It returns nil if the object does not exist. isUsable is false if the stored
// objects are not usable, see State.HasListed. In that case nothing is known about the object.
func (o Objects) Get(key types.NamespacedName) (object *unstructured.Unstructured, isUsable bool) {
	if !o.State().HasListed {
		return nil, false
	}
	storeKey := key.Name
	if key.Namespace != "" {
		storeKey = key.Namespace + "/" + key.Name
	}
	stored, exists, err := o.watch.store.objects.GetByKey(storeKey)
	if err != nil || !exists {
		return nil, err == nil
	}
	return stored.(*unstructured.Unstructured), true
}

// List returns the objects that match a selector. With an empty namespace, it returns the objects of
// all namespaces. isUsable is false if the stored objects are not usable, see State.HasListed.
func (o Objects) List(namespace string, selector labels.Selector) (found []*unstructured.Unstructured, isUsable bool) {
	if !o.State().HasListed {
		return nil, false
	}
	_ = toolscache.ListAllByNamespace(o.watch.store.objects, namespace, selector, func(stored any) {
		found = append(found, stored.(*unstructured.Unstructured))
	})
	return found, true
}

// ByIndex returns the objects with a value in an index of a subscriber. isUsable is false if the
// stored objects are not usable, see State.HasListed.
func (o Objects) ByIndex(index, value string) (found []*unstructured.Unstructured, isUsable bool) {
	if !o.State().HasListed {
		return nil, false
	}
	stored, err := o.watch.store.objects.ByIndex(index, value)
	if err != nil {
		return nil, false
	}
	for _, each := range stored {
		found = append(found, each.(*unstructured.Unstructured))
	}
	return found, true
}

// State returns the current state of the watch.
func (o Objects) State() State {
	state, _ := o.watch.currentState()
	return state
}

// StartedAt returns the time at which the watch was started.
func (o Objects) StartedAt() time.Time { return o.watch.startedAt }

// WaitForList waits until the objects have been listed, and reports whether they are usable. It stops
// waiting when ctx ends, or when the API server denies the request, does not serve the kind or exceeds
// a limit.
func (o Objects) WaitForList(ctx context.Context) bool {
	for {
		state, changed := o.watch.currentState()
		switch {
		case state.HasListed:
			return true
		case state.Phase != Syncing && state.Phase != Failing:
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// Retry makes a failed watch continue at once.
func (o Objects) Retry() { o.watch.retryNow() }

// Subscription is a subscription to the objects of a query.
type Subscription struct {
	Objects
	subscriber Subscriber
	close      sync.Once
}

// Close ends the subscription. The handler is not called any more when Close returns. The last
// subscription ends the watch.
func (s *Subscription) Close() { s.close.Do(func() { s.watch.cluster.unsubscribe(s) }) }
