package watches

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// store holds the objects of a shared watch and passes each change to the subscribers. It implements
// Sink.
type store struct {
	transform *Transform
	objects   toolscache.Indexer
	// onListed changes the state after a complete list was stored, before the handlers get its objects.
	onListed func() (before, after State)

	// mu orders events: while it is held, no other event is passed on, and no handler is added.
	// Handlers may read the objects, but must not subscribe to or unsubscribe from the same watch.
	mu            sync.Mutex
	subscriptions []*Subscription
	// listed contains the objects of the list that is being read.
	listed map[string]*unstructured.Unstructured
	// isComplete is true after the first complete list.
	isComplete bool
}

func newStore(transform *Transform, onListed func() (before, after State)) *store {
	return &store{
		transform: transform, onListed: onListed,
		objects: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
			toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
		}),
	}
}

// addSubscription adds a subscription. If the objects have been listed already, it passes all of them
// to the handler as initial objects.
func (s *store) addSubscription(added *Subscription) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(added.subscriber.Indexers) > 0 {
		if err := s.objects.AddIndexers(added.subscriber.Indexers); err != nil {
			return fmt.Errorf("adding an index: %w", err)
		}
	}
	s.subscriptions = append(s.subscriptions, added)
	if s.isComplete && added.subscriber.Handler != nil {
		for _, object := range s.objects.List() {
			added.subscriber.Handler.OnAdd(object, true)
		}
	}
	return nil
}

func (s *store) removeSubscription(removed *Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscriptions = slices.DeleteFunc(s.subscriptions, func(each *Subscription) bool { return each == removed })
}

// publishState passes a changed state to the subscribers.
func (s *store) publishState(before, after State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(before, after)
}

func (s *store) publish(before, after State) {
	if before.Phase == after.Phase {
		return
	}
	for _, each := range s.subscriptions {
		if each.subscriber.OnState != nil {
			each.subscriber.OnState(before, after)
		}
	}
}

// notify passes a change to the handlers. before is nil for a new object, and after is nil for a
// deleted one. The caller holds s.mu.
func (s *store) notify(before, after *unstructured.Unstructured, isInitial bool) {
	for _, each := range s.subscriptions {
		handler := each.subscriber.Handler
		switch {
		case handler == nil:
		case before == nil:
			handler.OnAdd(after, isInitial)
		case after == nil:
			handler.OnDelete(before)
		default:
			handler.OnUpdate(before, after)
		}
	}
}

// BeginList implements Sink.
func (s *store) BeginList() { s.listed = map[string]*unstructured.Unstructured{} }

// AddListed implements Sink. It adds an object to the current list.
func (s *store) AddListed(object runtime.Object) error {
	listed, key, err := s.convert(object)
	if err == nil {
		s.listed[key] = listed
	}
	return err
}

// EndList implements Sink. It replaces the objects by those of the list, and passes on the
// differences.
func (s *store) EndList(err error) {
	listed := s.listed
	s.listed = nil
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	previous := map[string]*unstructured.Unstructured{}
	for _, stored := range s.objects.List() {
		object := stored.(*unstructured.Unstructured)
		key, _ := toolscache.MetaNamespaceKeyFunc(object) // the object has a key since it was stored
		previous[key] = object
	}
	current := make([]any, 0, len(listed))
	for key, object := range listed {
		if isSame(previous[key], object) {
			object = previous[key]
		}
		current = append(current, object)
	}
	_ = s.objects.Replace(current, "") // it always returns nil
	isInitial := !s.isComplete
	s.isComplete = true
	s.publish(s.onListed())
	for key, object := range previous {
		if listed[key] == nil {
			s.notify(object, nil, false)
		}
	}
	for key, object := range listed {
		if !isSame(previous[key], object) {
			s.notify(previous[key], object, isInitial)
		}
	}
}

// isSame reports whether two objects have the same content, because they are the same version of the
// same object.
func isSame(a, b *unstructured.Unstructured) bool {
	return a != nil && b != nil && a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// Apply implements Sink. It applies one event of the watch.
func (s *store) Apply(event watch.Event) error {
	if event.Type == watch.Bookmark {
		return nil
	}
	object, key, err := s.convert(event.Object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, exists, _ := s.objects.GetByKey(key)
	var previous *unstructured.Unstructured
	if exists {
		previous = stored.(*unstructured.Unstructured)
	}
	switch {
	case event.Type == watch.Deleted && exists:
		_ = s.objects.Delete(object) // it always returns nil for an object with a key, like Update
		s.notify(object, nil, false)
	case event.Type != watch.Deleted && !isSame(previous, object):
		_ = s.objects.Update(object)
		s.notify(previous, object, false)
	}
	return nil
}

func (s *store) convert(object runtime.Object) (*unstructured.Unstructured, string, error) {
	converted, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, "", fmt.Errorf("unexpected type %T", object)
	}
	converted.SetManagedFields(nil)
	if s.transform != nil {
		s.transform.Apply(converted)
	}
	key, err := toolscache.MetaNamespaceKeyFunc(converted)
	return converted, key, err
}
