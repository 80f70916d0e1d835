package member

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"karmada.io/karmada/internal/access/member/bounds"
)

// inventoryPageSize is the number of objects of a list that are in memory at once.
const inventoryPageSize = 250

// reducedSource lists and watches objects of one kind and reduces each of them to a T.
type reducedSource[T any] struct {
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	selector string
	// readPage reads a page of the list within the bounds.
	readPage func(context.Context, *metav1.ListOptions,
		func(context.Context, metav1.ListOptions) (runtime.Object, error), func(runtime.Object) error) error
	// reduce converts an object to a T. It returns false for an object of another type.
	reduce func(runtime.Object) (T, bool, error)
	bounds inventoryBounds
}

// reducedSink stores the reduced objects. Callers of set, remove and replace must hold the mutex
// that lock returns.
type reducedSink[T any] interface {
	set(T)
	remove(T)
	replace([]T)
	lock() *sync.Mutex
}

// runReflector keeps a sink up to date with a source until ctx ends.
func runReflector[T any](ctx context.Context, name string, source reducedSource[T], target reducedSink[T]) {
	reflector := toolscache.NewReflectorWithOptions(source, nil, reflectorStore[T]{target}, toolscache.ReflectorOptions{Name: name, TypeDescription: name})
	reflector.RunWithContext(ctx)
}

// IsWatchListSemanticsUnSupported makes reflectors list page by page. Otherwise a reflector would
// request the list as a stream of events, and collect the whole list in memory.
func (r reducedSource[T]) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (r reducedSource[T]) List(o metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (r reducedSource[T]) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), o)
}

// ListWithContext reads the whole list and keeps only the reduced objects. It always reads in pages
// and from the storage, because a list from the cache of an API server may be a single answer of a
// gigabyte.
func (r reducedSource[T]) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	r.bounds.beginList()
	list, err := r.readList(ctx)
	if err != nil {
		r.bounds.abortList()
		return nil, err
	}
	return list, nil
}

func (r reducedSource[T]) readList(ctx context.Context) (*reducedList[T], error) {
	list := &reducedList[T]{}
	options := metav1.ListOptions{FieldSelector: r.selector, Limit: inventoryPageSize}
	for pages := 1; ; pages++ {
		if err := r.readPage(ctx, &options, r.list, list.addPage(r)); err != nil {
			// An expired continue token is not handled here, because the reflector lists again
			// after every error.
			return nil, fmt.Errorf("reading a page of a list: %w", err)
		}
		// An empty page counts as one object, because otherwise a list of empty pages would never
		// end.
		if err := r.bounds.checkList(max(pages, len(list.Items))); err != nil {
			return nil, err
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return list, nil
		}
	}
}

// addPage returns a function that reduces the objects of a page and adds them to the list.
func (r *reducedList[T]) addPage(source reducedSource[T]) func(runtime.Object) error {
	return func(page runtime.Object) error {
		accessor, err := meta.ListAccessor(page)
		if err != nil {
			return err
		}
		r.ResourceVersion, r.Continue = accessor.GetResourceVersion(), accessor.GetContinue()
		return meta.EachListItem(page, func(object runtime.Object) error {
			value, ok, err := source.reduce(object)
			if ok && err == nil {
				r.Items = append(r.Items, reducedObject[T]{value: value})
			}
			return source.bounds.objectError(err)
		})
	}
}

// WatchWithContext watches objects and passes on only the reduced objects.
func (r reducedSource[T]) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = r.selector
	events, err := r.watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		value, ok, err := r.reduce(event.Object)
		if err = cmp.Or(r.bounds.objectError(err), r.bounds.checkHeld()); err != nil {
			return watch.Event{Type: watch.Error, Object: bounds.NewErrorStatus(err)}, true
		}
		if ok {
			version := ""
			if accessor, err := meta.Accessor(event.Object); err == nil {
				version = accessor.GetResourceVersion()
			}
			event.Object = &reducedObject[T]{version: version, value: value}
		}
		return event, true
	}), nil
}

// reducedObject wraps a reduced value in a type that reflectors accept.
type reducedObject[T any] struct {
	version string
	value   T
}

// GetObjectKind implements runtime.Object.
func (r *reducedObject[T]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (r *reducedObject[T]) DeepCopyObject() runtime.Object {
	copied := *r
	return &copied
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (r *reducedObject[T]) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{ResourceVersion: r.version}
}

type reducedList[T any] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []reducedObject[T]
}

// DeepCopyObject implements runtime.Object.
func (r *reducedList[T]) DeepCopyObject() runtime.Object {
	copied := *r
	copied.Items = append([]reducedObject[T](nil), r.Items...)
	return &copied
}

// reflectorStore passes the objects of a reflector to a sink.
type reflectorStore[T any] struct{ reducedSink[T] }

func (r reflectorStore[T]) apply(object any, update func(T)) error {
	reduced, ok := object.(*reducedObject[T])
	if !ok {
		return fmt.Errorf("unexpected type %T", object)
	}
	r.lock().Lock()
	defer r.lock().Unlock()
	update(reduced.value)
	return nil
}

// Add implements cache.ReflectorStore, as do the methods below.
func (r reflectorStore[T]) Add(object any) error { return r.apply(object, r.set) }

// Update stores a changed object.
func (r reflectorStore[T]) Update(object any) error { return r.apply(object, r.set) }

// Delete removes a deleted object.
func (r reflectorStore[T]) Delete(object any) error { return r.apply(object, r.remove) }

// Replace stores a whole list.
func (r reflectorStore[T]) Replace(objects []any, _ string) error {
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		reduced, ok := object.(*reducedObject[T])
		if !ok {
			return fmt.Errorf("unexpected type %T", object)
		}
		all = append(all, reduced.value)
	}
	r.lock().Lock()
	defer r.lock().Unlock()
	r.replace(all)
	return nil
}

// Resync does nothing, because unchanged objects need no second update.
func (r reflectorStore[T]) Resync() error { return nil }
