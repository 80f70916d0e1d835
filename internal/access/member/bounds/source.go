package bounds

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"karmada.io/karmada/internal/domain/conditions"
)

// source lists and watches one kind within the bounds of its cache. It is used by one
// reflector.
type source struct {
	toolscache.ListerWatcherWithContext
	kind   schema.GroupVersionKind
	caches *Caches

	mu sync.Mutex
	// held is what the cache holds.
	held *account
}

// Source bounds what a cache of a kind takes from its member.
func (c *Caches) Source(from toolscache.ListerWatcher, kind schema.GroupVersionKind) toolscache.ListerWatcher {
	return &source{ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(from), kind: kind, caches: c, held: c.account(kind)}
}

// List implements cache.ListerWatcher.
func (s *source) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (s *source) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

// ListWithContext reads the whole list in pages, whatever the reflector asks for: a
// list from the cache of a server comes as one answer.
func (s *source) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.ResourceVersion, o.ResourceVersionMatch, o.Continue, o.Limit = "", "", "", s.caches.Limits.Page
	whole, account := &unstructured.UnstructuredList{}, s.caches.account(s.kind)
	unmarked, pages := int64(0), int64(0)
	for {
		err := s.caches.ReadPage(ctx, &o, s.ListerWatcherWithContext.ListWithContext, func(object runtime.Object) (err error) {
			page, ok := object.(*unstructured.UnstructuredList)
			if !ok {
				return s.lie(fmt.Sprintf("%T instead of a list", object))
			}
			whole.Object = page.Object
			unmarked, err = s.take(page, whole, account, unmarked)
			return err
		})
		if err != nil {
			return nil, err
		}
		if o.Continue = whole.GetContinue(); o.Continue == "" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.held = account
			return whole, nil
		}
		if pages++; pages > s.caches.Limits.MinPages+int64(len(whole.Items)) {
			return nil, s.caches.Ledger.Record(ExceededError{Bound: Pages, Subject: account.subject, Detail: fmt.Sprintf("its list goes on after %d pages with few objects", s.caches.Limits.MinPages)})
		}
	}
}

// take moves the objects of a page that are ours into a list.
func (s *source) take(page, whole *unstructured.UnstructuredList, account *account, unmarked int64) (int64, error) {
	for i := range page.Items {
		object := &page.Items[i]
		if !isMarked(object) {
			if unmarked++; unmarked > s.caches.Limits.Unmarked {
				return unmarked, s.unmarked(account.subject)
			}
			continue
		}
		if err := s.check(object); err != nil {
			return unmarked, err
		}
		object.SetManagedFields(nil)
		if err := account.put(object); err != nil {
			return unmarked, err
		}
		whole.Items = append(whole.Items, *object)
	}
	page.Items = nil
	return unmarked, nil
}

// check returns an error for an object that cannot be one of the kind.
func (s *source) check(object *unstructured.Unstructured) error {
	if kind := object.GroupVersionKind(); kind != s.kind {
		return s.lie(fmt.Sprintf("an object of kind %q", conditions.Shorten(conditions.Printable(kind.String()), 128)))
	}
	if len(object.GetName()) == 0 || len(object.GetName()) > maxName || len(object.GetNamespace()) > maxName {
		return s.lie("an object without a valid name")
	}
	return nil
}

func (s *source) lie(what string) error {
	return s.caches.Ledger.Record(ExceededError{Bound: Identity, Subject: subjectOfKind(s.kind), Detail: "the member answers with " + what})
}

func (s *source) unmarked(subject string) error {
	limit := s.caches.Limits.Unmarked
	return s.caches.Ledger.Record(ExceededError{Bound: Unmarked, Subject: subject, Limit: limit, Measured: limit + 1, Unit: "objects without the managed label, which the member was asked to leave out"})
}

// WatchWithContext watches within the bounds.
func (s *source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := s.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &watcher{source: s, incoming: events, result: make(chan watch.Event), done: make(chan struct{}), held: s.account()}
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		w.held, w.initial = s.caches.account(s.kind), true
	}
	go w.run()
	return w, nil
}

func (s *source) account() *account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// watcher hands on what of a watch belongs into the cache.
type watcher struct {
	source   *source
	incoming watch.Interface
	result   chan watch.Event
	done     chan struct{}
	stop     sync.Once

	held *account
	// initial is true until the objects of the beginning have all come.
	initial  bool
	unmarked int64
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.stop.Do(func() {
		close(w.done)
		w.incoming.Stop()
	})
}

func (w *watcher) run() {
	defer close(w.result)
	for event := range w.incoming.ResultChan() {
		event, ok, err := w.filter(event)
		if err != nil {
			w.send(watch.Event{Type: watch.Error, Object: AsStatus(err)})
			w.Stop()
			return
		}
		if ok && !w.send(event) {
			return
		}
	}
}

func (w *watcher) send(event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-w.done:
		return false
	}
}

// filter reports whether an event is for the cache. An object that lost its label is
// one that is gone, as it is for a server that selects.
func (w *watcher) filter(event watch.Event) (watch.Event, bool, error) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		return event, true, nil
	}
	if event.Type == watch.Bookmark {
		w.bookmark(object)
		return event, true, nil
	}
	if event.Type != watch.Deleted && !isMarked(object) {
		if w.unmarked++; w.unmarked > w.source.caches.Limits.Unmarked {
			return event, false, w.source.unmarked(w.held.subject)
		}
		event.Type = watch.Deleted
	}
	if event.Type == watch.Deleted {
		return event, w.held.drop(object), nil
	}
	if err := w.source.check(object); err != nil {
		return event, false, err
	}
	object.SetManagedFields(nil)
	return event, true, w.held.put(object)
}

// bookmark notes the end of the objects of the beginning: from then on the cache holds
// them instead of what it held before.
func (w *watcher) bookmark(object *unstructured.Unstructured) {
	if !w.initial || object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return
	}
	w.initial = false
	w.source.mu.Lock()
	defer w.source.mu.Unlock()
	w.source.held = w.held
}

// AsStatus makes an event of an error. The reflector lists anew after a pause that
// grows.
func AsStatus(err error) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: 502, Reason: "MemberBoundExceeded", Message: err.Error(),
	}
}
