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

// boundedSource lists and watches one kind within the limits of its cache. It serves only one
// reflector.
type boundedSource struct {
	toolscache.ListerWatcherWithContext
	kind   schema.GroupVersionKind
	bounds *MemberBounds

	mu sync.Mutex
	// account tracks the current size of the cache.
	account *cacheAccount
}

// BoundedListerWatcher returns a ListerWatcher that limits the objects that the cache of a kind
// receives from its member.
func (m *MemberBounds) BoundedListerWatcher(from toolscache.ListerWatcher, kind schema.GroupVersionKind) toolscache.ListerWatcher {
	return &boundedSource{ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(from), kind: kind, bounds: m, account: m.newCacheAccount(kind)}
}

// List implements cache.ListerWatcher.
func (b *boundedSource) List(o metav1.ListOptions) (runtime.Object, error) {
	return b.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (b *boundedSource) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return b.WatchWithContext(context.Background(), o)
}

// ListWithContext reads the whole list in pages. It ignores the paging that the reflector requests,
// because an API server that answers from its cache does not use pages.
func (b *boundedSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.ResourceVersion, o.ResourceVersionMatch, o.Continue, o.Limit = "", "", "", b.bounds.Limits.PageSize
	list, account := &unstructured.UnstructuredList{}, b.bounds.newCacheAccount(b.kind)
	unmarked, pages := int64(0), int64(0)
	for {
		err := b.bounds.ReadPage(ctx, &o, b.ListerWatcherWithContext.ListWithContext, func(object runtime.Object) (err error) {
			page, ok := object.(*unstructured.UnstructuredList)
			if !ok {
				return b.recordWrongObject(fmt.Sprintf("%T instead of a list", object))
			}
			list.Object = page.Object
			unmarked, err = b.addManaged(page, list, account, unmarked)
			return err
		})
		if err != nil {
			return nil, err
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.account = account
			return list, nil
		}
		if pages++; pages > b.bounds.Limits.MinPages+int64(len(list.Items)) {
			return nil, b.bounds.Hits.Record(ExceededError{Bound: Pages, Subject: account.subject, Detail: fmt.Sprintf("the list continues after %d pages with few objects", b.bounds.Limits.MinPages)})
		}
	}
}

// addManaged adds those objects of a page that have the managed label to a list.
func (b *boundedSource) addManaged(page, list *unstructured.UnstructuredList, account *cacheAccount, unmarked int64) (int64, error) {
	for i := range page.Items {
		object := &page.Items[i]
		if !hasManagedLabel(object) {
			if unmarked++; unmarked > b.bounds.Limits.UnlabeledObjects {
				return unmarked, b.recordUnlabeled(account.subject)
			}
			continue
		}
		if err := b.validateObject(object); err != nil {
			return unmarked, err
		}
		object.SetManagedFields(nil)
		if err := account.put(object); err != nil {
			return unmarked, err
		}
		list.Items = append(list.Items, *object)
	}
	page.Items = nil
	return unmarked, nil
}

// validateObject returns an error if an object has another kind than requested, or no valid name.
func (b *boundedSource) validateObject(object *unstructured.Unstructured) error {
	if kind := object.GroupVersionKind(); kind != b.kind {
		return b.recordWrongObject(fmt.Sprintf("an object of kind %q", conditions.Truncate(conditions.ToPrintable(kind.String()), 128)))
	}
	if len(object.GetName()) == 0 || len(object.GetName()) > maxNameLength || len(object.GetNamespace()) > maxNameLength {
		return b.recordWrongObject("an object without a valid name")
	}
	return nil
}

func (b *boundedSource) recordWrongObject(answer string) error {
	return b.bounds.Hits.Record(ExceededError{Bound: ObjectIdentity, Subject: subjectOfKind(b.kind), Detail: "the member answers with " + answer})
}

func (b *boundedSource) recordUnlabeled(subject string) error {
	limit := b.bounds.Limits.UnlabeledObjects
	return b.bounds.Hits.Record(ExceededError{Bound: UnlabeledObjects, Subject: subject, Limit: limit, Measured: limit + 1, Unit: "objects without the managed label, which the label selector excludes"})
}

// WatchWithContext starts a watch whose events are checked against the limits.
func (b *boundedSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := b.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &boundedWatch{source: b, incoming: events, result: make(chan watch.Event), done: make(chan struct{}), account: b.currentAccount()}
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		w.account, w.isInitial = b.bounds.newCacheAccount(b.kind), true
	}
	go w.run()
	return w, nil
}

func (b *boundedSource) currentAccount() *cacheAccount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.account
}

// boundedWatch passes on only the events that concern the cache.
type boundedWatch struct {
	source   *boundedSource
	incoming watch.Interface
	result   chan watch.Event
	done     chan struct{}
	stopOnce sync.Once

	account *cacheAccount
	// isInitial is true until all initial events have arrived.
	isInitial bool
	unlabeled int64
}

// ResultChan implements watch.Interface.
func (b *boundedWatch) ResultChan() <-chan watch.Event { return b.result }

// Stop implements watch.Interface.
func (b *boundedWatch) Stop() {
	b.stopOnce.Do(func() {
		close(b.done)
		b.incoming.Stop()
	})
}

func (b *boundedWatch) run() {
	defer close(b.result)
	for event := range b.incoming.ResultChan() {
		event, ok, err := b.filter(event)
		if err != nil {
			b.send(watch.Event{Type: watch.Error, Object: NewErrorStatus(err)})
			b.Stop()
			return
		}
		if ok && !b.send(event) {
			return
		}
	}
}

func (b *boundedWatch) send(event watch.Event) bool {
	select {
	case b.result <- event:
		return true
	case <-b.done:
		return false
	}
}

// filter reports whether an event concerns the cache. It converts the event of an object that lost
// its label to a deletion, as an API server does for a watch with a label selector.
func (b *boundedWatch) filter(event watch.Event) (watch.Event, bool, error) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		return event, true, nil
	}
	if event.Type == watch.Bookmark {
		b.handleBookmark(object)
		return event, true, nil
	}
	if event.Type != watch.Deleted && !hasManagedLabel(object) {
		if b.unlabeled++; b.unlabeled > b.source.bounds.Limits.UnlabeledObjects {
			return event, false, b.source.recordUnlabeled(b.account.subject)
		}
		event.Type = watch.Deleted
	}
	if event.Type == watch.Deleted {
		return event, b.account.remove(object), nil
	}
	if err := b.source.validateObject(object); err != nil {
		return event, false, err
	}
	object.SetManagedFields(nil)
	return event, true, b.account.put(object)
}

// handleBookmark handles the end of the initial events. It replaces the measured size of the cache,
// because from then on the cache holds only the objects of the initial events.
func (b *boundedWatch) handleBookmark(object *unstructured.Unstructured) {
	if !b.isInitial || object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return
	}
	b.isInitial = false
	b.source.mu.Lock()
	defer b.source.mu.Unlock()
	b.source.account = b.account
}

// NewErrorStatus returns the Status object for an error event. A reflector that receives this event
// lists again after a backoff.
func NewErrorStatus(err error) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: 502, Reason: "MemberBoundExceeded", Message: err.Error(),
	}
}
