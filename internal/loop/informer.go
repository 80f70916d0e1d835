package loop

import toolscache "k8s.io/client-go/tools/cache"

// Handlers are the handlers for the events of an informer for objects of type T. Objects of
// another type are ignored. A nil handler ignores its events.
type Handlers[T any] struct {
	// Added receives a new object. isInInitialList is true for objects that existed before the
	// informer started.
	Added func(object T, isInInitialList bool)
	// Updated receives the states of an object before and after a change. If the watch was
	// interrupted, the two states may belong to different objects with the same name.
	Updated func(before, after T)
	// Deleted receives the last observed state of a deleted object. If the watch was interrupted,
	// the object may have changed between this state and its deletion.
	Deleted func(lastKnown T)
}

// OnAdd implements toolscache.ResourceEventHandler.
func (h Handlers[T]) OnAdd(obj any, isInInitialList bool) {
	if object, ok := obj.(T); ok && h.Added != nil {
		h.Added(object, isInInitialList)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (h Handlers[T]) OnUpdate(before, after any) {
	older, ok := before.(T)
	newer, ok2 := after.(T)
	if ok && ok2 && h.Updated != nil {
		h.Updated(older, newer)
	}
}

// OnDelete implements toolscache.ResourceEventHandler.
func (h Handlers[T]) OnDelete(obj any) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if object, ok := obj.(T); ok && h.Deleted != nil {
		h.Deleted(object)
	}
}
