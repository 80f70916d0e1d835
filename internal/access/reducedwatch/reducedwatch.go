// Package reducedwatch answers: how does a process follow many objects of one kind without holding
// them in memory?
//
// Each object is reduced to the values that the process needs as soon as it is decoded.
//
// Invariants:
//   - At most one page of whole objects is in memory at once.
//   - The sink gets every object of a list, and every change after the list.
package reducedwatch

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

// PageSize is the number of objects of a list that are in memory at once.
const PageSize = 250

// Source lists and watches objects of one kind and reduces each of them to a T.
type Source[T any] struct {
	ListPage    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	WatchEvents func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// FieldSelector selects the objects. Empty selects all objects.
	FieldSelector string
	// Reduce converts an object to a T. It returns false for an object of another type.
	Reduce func(runtime.Object) (T, bool, error)
	// Limits limits the memory of the reduced objects. The zero value sets no limit.
	Limits Limits
}

// Limits are the functions that limit the memory of reduced objects. Each of them may be nil.
type Limits struct {
	// ReadPage calls list, and take with the page that list returned. It may change the number of
	// objects of the page.
	ReadPage func(ctx context.Context, o *metav1.ListOptions,
		list func(context.Context, metav1.ListOptions) (runtime.Object, error), take func(runtime.Object) error) error
	// BeginList is called before the first page of a list is read. AbortList is called when the
	// reading of the list failed.
	BeginList, AbortList func()
	// CheckList returns an error if the objects of a list exceed the limits. It is called after each
	// page with the number of objects that were read.
	CheckList func(objects int) error
	// CheckHeld returns an error if the held objects exceed the limits. It is called for each event
	// of a watch.
	CheckHeld func() error
}

// withDefaults returns limits without nil functions.
func (l Limits) withDefaults() Limits {
	if l.ReadPage == nil {
		l.ReadPage = readPage
	}
	if l.BeginList == nil {
		l.BeginList = func() {}
	}
	if l.AbortList == nil {
		l.AbortList = func() {}
	}
	if l.CheckList == nil {
		l.CheckList = func(int) error { return nil }
	}
	if l.CheckHeld == nil {
		l.CheckHeld = func() error { return nil }
	}
	return l
}

func readPage(ctx context.Context, o *metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error), take func(runtime.Object) error,
) error {
	page, err := list(ctx, *o)
	if err != nil {
		return err
	}
	return take(page)
}

// Sink stores the reduced objects. Its methods are called one after another.
type Sink[T any] interface {
	Set(T)
	Remove(T)
	// Replace replaces all objects by those of a new list.
	Replace([]T)
}

// Run keeps a sink up to date with a source until ctx ends. mu is held while a method of the sink
// runs. name appears in messages.
func Run[T any](ctx context.Context, name string, source Source[T], mu *sync.Mutex, sink Sink[T]) {
	source.Limits = source.Limits.withDefaults()
	store := reflectorStore[T]{sink: sink, mu: mu}
	toolscache.NewReflectorWithOptions(source, nil, store, toolscache.ReflectorOptions{Name: name, TypeDescription: name}).RunWithContext(ctx)
}

// IsWatchListSemanticsUnSupported makes reflectors list page by page. Otherwise a reflector would
// request the list as a stream of events, and collect the whole list in memory.
func (r Source[T]) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (r Source[T]) List(o metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (r Source[T]) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), o)
}

// ListWithContext reads the whole list and keeps only the reduced objects. It always reads in pages
// and from the storage, because a list from the cache of an API server may be a single answer of a
// gigabyte.
func (r Source[T]) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	r.Limits.BeginList()
	list, err := r.readList(ctx)
	if err != nil {
		r.Limits.AbortList()
		return nil, err
	}
	return list, nil
}

func (r Source[T]) readList(ctx context.Context) (*reducedList[T], error) {
	list := &reducedList[T]{}
	options := metav1.ListOptions{FieldSelector: r.FieldSelector, Limit: PageSize}
	for pages := 1; ; pages++ {
		if err := r.Limits.ReadPage(ctx, &options, r.ListPage, list.addPage(r)); err != nil {
			// An expired continue token is not handled here, because the reflector lists again
			// after every error.
			return nil, fmt.Errorf("reading a page of a list: %w", err)
		}
		// An empty page counts as one object, because otherwise a list of empty pages would never
		// end.
		if err := r.Limits.CheckList(max(pages, len(list.Items))); err != nil {
			return nil, err
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return list, nil
		}
	}
}

// addPage returns a function that reduces the objects of a page and adds them to the list.
func (r *reducedList[T]) addPage(source Source[T]) func(runtime.Object) error {
	return func(page runtime.Object) error {
		accessor, err := meta.ListAccessor(page)
		if err != nil {
			return err
		}
		r.ResourceVersion, r.Continue = accessor.GetResourceVersion(), accessor.GetContinue()
		return meta.EachListItem(page, func(object runtime.Object) error {
			value, ok, err := source.Reduce(object)
			if ok && err == nil {
				r.Items = append(r.Items, reducedObject[T]{value: value})
			}
			return err
		})
	}
}

// WatchWithContext watches objects and passes on only the reduced objects.
func (r Source[T]) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = r.FieldSelector
	events, err := r.WatchEvents(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		value, ok, err := r.Reduce(event.Object)
		if err = cmp.Or(err, r.Limits.CheckHeld()); err != nil {
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
type reflectorStore[T any] struct {
	sink Sink[T]
	mu   *sync.Mutex
}

func (r reflectorStore[T]) apply(object any, update func(T)) error {
	reduced, ok := object.(*reducedObject[T])
	if !ok {
		return fmt.Errorf("unexpected type %T", object)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	update(reduced.value)
	return nil
}

// Add implements cache.ReflectorStore, as do the methods below.
func (r reflectorStore[T]) Add(object any) error { return r.apply(object, r.sink.Set) }

// Update stores a changed object.
func (r reflectorStore[T]) Update(object any) error { return r.apply(object, r.sink.Set) }

// Delete removes a deleted object.
func (r reflectorStore[T]) Delete(object any) error { return r.apply(object, r.sink.Remove) }

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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sink.Replace(all)
	return nil
}

// Resync does nothing, because unchanged objects need no second update.
func (r reflectorStore[T]) Resync() error { return nil }
