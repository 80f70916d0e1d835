package watches

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// ReducedStore stores reduced objects. Its methods are called one after another.
type ReducedStore[T any] interface {
	Set(T)
	Remove(T)
	// Replace replaces all objects by those of a complete list.
	Replace([]T)
}

// Reduced is a Sink that reduces each object to the fields that a process needs, so that it can watch
// many objects of a kind with little memory.
type Reduced[T any] struct {
	// Reduce returns the needed fields of an object.
	Reduce func(runtime.Object) (T, error)
	// Store stores the reduced objects. Mutex is held while one of its methods runs.
	Store ReducedStore[T]
	Mutex *sync.Mutex

	listed []T
}

// BeginList implements Sink, as do the methods below.
func (r *Reduced[T]) BeginList() { r.listed = nil }

// AddListed reduces a listed object.
func (r *Reduced[T]) AddListed(object runtime.Object) error {
	reduced, err := r.Reduce(object)
	if err == nil {
		r.listed = append(r.listed, reduced)
	}
	return err
}

// Listed returns the number of objects in the current list.
func (r *Reduced[T]) Listed() int { return len(r.listed) }

// EndList stores the objects of a complete list.
func (r *Reduced[T]) EndList(err error) {
	if err == nil {
		r.Mutex.Lock()
		defer r.Mutex.Unlock()
		r.Store.Replace(r.listed)
	}
	r.listed = nil
}

// Apply stores a changed object, or removes a deleted one.
func (r *Reduced[T]) Apply(event watch.Event) error {
	if event.Type == watch.Bookmark {
		return nil
	}
	reduced, err := r.Reduce(event.Object)
	if err != nil {
		return err
	}
	r.Mutex.Lock()
	defer r.Mutex.Unlock()
	if event.Type == watch.Deleted {
		r.Store.Remove(reduced)
		return nil
	}
	r.Store.Set(reduced)
	return nil
}
