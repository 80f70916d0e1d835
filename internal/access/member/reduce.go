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

// pageSize is how many objects of a list are in memory at once.
const pageSize = 250

// feed lists and watches objects of one kind, of which only a T is of interest.
type feed[T any] struct {
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	selector string
	// readPage reads a page of the list within the bounds.
	readPage func(context.Context, *metav1.ListOptions,
		func(context.Context, metav1.ListOptions) (runtime.Object, error), func(runtime.Object) error) error
	// reduce is false for what is no such object.
	reduce func(runtime.Object) (T, bool, error)
	within within
}

// sink takes in what a feed has. Its methods are called under its lock.
type sink[T any] interface {
	set(T)
	remove(T)
	replace([]T)
	lock() *sync.Mutex
}

// reflectInto keeps a sink up to date with a feed until ctx ends.
func reflectInto[T any](ctx context.Context, name string, from feed[T], into sink[T]) {
	reflector := toolscache.NewReflectorWithOptions(from, nil, store[T]{into}, toolscache.ReflectorOptions{Name: name, TypeDescription: name})
	reflector.RunWithContext(ctx)
}

// IsWatchListSemanticsUnSupported tells reflectors to list page by page: a list that
// is streamed as events would be collected whole by the reflector.
func (s feed[T]) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (s feed[T]) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (s feed[T]) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

// ListWithContext reads the whole list and keeps of each page only what is of
// interest. Whatever the reflector asks for, it is read anew and in pages: a list
// that a server has in its cache may come as one answer of a gigabyte.
func (s feed[T]) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	s.within.begin()
	whole, err := s.readList(ctx)
	if err != nil {
		s.within.end()
		return nil, err
	}
	return whole, nil
}

func (s feed[T]) readList(ctx context.Context) (*reducedList[T], error) {
	whole := &reducedList[T]{}
	options := metav1.ListOptions{FieldSelector: s.selector, Limit: pageSize}
	for pages := 1; ; pages++ {
		if err := s.readPage(ctx, &options, s.list, whole.take(s)); err != nil {
			// Also when it took longer than the server remembers: then it begins again.
			return nil, fmt.Errorf("reading a page of a list: %w", err)
		}
		// A page without objects counts as one, or a list of empty pages would not end.
		if err := s.within.checkList(max(pages, len(whole.Items))); err != nil {
			return nil, err
		}
		if options.Continue = whole.Continue; options.Continue == "" {
			return whole, nil
		}
	}
}

// take returns what takes in the pages of a feed.
func (l *reducedList[T]) take(from feed[T]) func(runtime.Object) error {
	return func(page runtime.Object) error {
		accessor, err := meta.ListAccessor(page)
		if err != nil {
			return err
		}
		l.ResourceVersion, l.Continue = accessor.GetResourceVersion(), accessor.GetContinue()
		return meta.EachListItem(page, func(object runtime.Object) error {
			counted, ok, err := from.reduce(object)
			if ok && err == nil {
				l.Items = append(l.Items, reduced[T]{value: counted})
			}
			return from.within.refused(err)
		})
	}
}

// WatchWithContext watches and keeps of each object only what is of interest.
func (s feed[T]) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = s.selector
	events, err := s.watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		counted, ok, err := s.reduce(event.Object)
		if err = cmp.Or(s.within.refused(err), s.within.checkHeld()); err != nil {
			return watch.Event{Type: watch.Error, Object: bounds.NewErrorStatus(err)}, true
		}
		if ok {
			version := ""
			if accessor, err := meta.Accessor(event.Object); err == nil {
				version = accessor.GetResourceVersion()
			}
			event.Object = &reduced[T]{version: version, value: counted}
		}
		return event, true
	}), nil
}

// reduced is what is of interest of an object, in a form that reflectors take.
type reduced[T any] struct {
	version string
	value   T
}

// GetObjectKind implements runtime.Object.
func (r *reduced[T]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (r *reduced[T]) DeepCopyObject() runtime.Object {
	copied := *r
	return &copied
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (r *reduced[T]) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{ResourceVersion: r.version}
}

type reducedList[T any] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []reduced[T]
}

// DeepCopyObject implements runtime.Object.
func (l *reducedList[T]) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = append([]reduced[T](nil), l.Items...)
	return &copied
}

// store hands what a reflector tells to a sink.
type store[T any] struct{ sink[T] }

func (s store[T]) tell(object any, to func(T)) error {
	one, ok := object.(*reduced[T])
	if !ok {
		return fmt.Errorf("%T is not what is counted", object)
	}
	s.lock().Lock()
	defer s.lock().Unlock()
	to(one.value)
	return nil
}

// Add implements cache.ReflectorStore, as all that follows.
func (s store[T]) Add(object any) error { return s.tell(object, s.set) }

// Update takes in a changed object.
func (s store[T]) Update(object any) error { return s.tell(object, s.set) }

// Delete takes out an object that is gone.
func (s store[T]) Delete(object any) error { return s.tell(object, s.remove) }

// Replace takes in a whole list.
func (s store[T]) Replace(objects []any, _ string) error {
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		one, ok := object.(*reduced[T])
		if !ok {
			return fmt.Errorf("%T is not what is counted", object)
		}
		all = append(all, one.value)
	}
	s.lock().Lock()
	defer s.lock().Unlock()
	s.replace(all)
	return nil
}

// Resync does nothing: nobody has to hear twice of what did not change.
func (s store[T]) Resync() error { return nil }
