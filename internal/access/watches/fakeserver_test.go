package watches

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/domain/servedkinds"
)

var (
	widgetKind   = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	widgets      = Query{Kind: widgetKind}
	errNotFound  = apierrors.NewNotFound(schema.GroupResource{Group: "example.org", Resource: "widgets"}, "")
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Group: "example.org", Resource: "widgets"}, "", nil)
	errExpired   = apierrors.NewResourceExpired("too old")
)

// apiServer is an API server that stores Widgets. Its resource version counts the changes.
type apiServer struct {
	mu      sync.Mutex
	version int
	objects map[string]*unstructured.Unstructured
	history []watch.Event
	watches []chan struct{}
	// err is the response to every list and watch.
	err error
	// availability is the result of discovery. isUnknown makes the lookup of the kind fail.
	availability servedkinds.Availability
	isUnknown    bool
	// expireAfter is the number of pages after which a list expires once. 0 means never.
	expireAfter int
	// endsWatches makes the API server end each watch after one event.
	endsWatches          bool
	lists, watchRequests int
}

func newAPIServer(names ...string) *apiServer {
	s := &apiServer{objects: map[string]*unstructured.Unstructured{}}
	for _, name := range names {
		s.put(name)
	}
	return s
}

func (s *apiServer) server() *Server {
	pages := &bounds.MemberBounds{Limits: bounds.Limits{PageSize: 2, MinPages: 10}}
	return &Server{
		Source: func(q Query) (*Source, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.isUnknown {
				return nil, &meta.NoKindMatchError{GroupKind: q.Kind.GroupKind(), SearchedVersions: []string{q.Kind.Version}}
			}
			return &Source{ListPage: s.list, WatchEvents: s.watch, Bounds: pages}, nil
		},
		Availability: func(schema.GroupVersionKind) (servedkinds.Availability, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.availability, nil
		},
	}
}

// change changes the fields of the API server.
func (s *apiServer) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *apiServer) put(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	eventType := watch.Modified
	if s.objects[name] == nil {
		eventType = watch.Added
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(widgetKind)
	object.SetNamespace("shop")
	object.SetName(name)
	object.SetUID(types.UID(name))
	object.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[name] = object
	s.record(eventType, object)
}

func (s *apiServer) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	removed := s.objects[name].DeepCopy()
	removed.SetResourceVersion(strconv.Itoa(s.version))
	delete(s.objects, name)
	s.record(watch.Deleted, removed)
}

func (s *apiServer) record(eventType watch.EventType, object *unstructured.Unstructured) {
	s.history = append(s.history, watch.Event{Type: eventType, Object: object})
	s.wakeWatches()
}

func (s *apiServer) wakeWatches() {
	for _, changed := range s.watches {
		close(changed)
	}
	s.watches = nil
}

// fail makes the API server respond with an error, and ends its watches. nil ends the failure.
func (s *apiServer) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.wakeWatches()
}

// compact drops the history.
func (s *apiServer) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = nil
}

func (s *apiServer) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if o.Continue == "" && o.Limit != 1 {
		s.lists++
	}
	start, _ := strconv.Atoi(o.Continue)
	if s.expireAfter > 0 && start == 2*s.expireAfter {
		s.expireAfter = 0
		err := apierrors.NewResourceExpired("compacted")
		err.ErrStatus.Continue = o.Continue
		return nil, err
	}
	var names []string
	for name := range s.objects {
		names = append(names, name)
	}
	slices.Sort(names)
	end := min(start+int(o.Limit), len(names))
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "WidgetList"}}
	for _, name := range names[start:end] {
		list.Items = append(list.Items, *s.objects[name].DeepCopy())
	}
	list.SetResourceVersion(strconv.Itoa(s.version))
	if end < len(names) {
		list.SetContinue(strconv.Itoa(end))
	}
	return list, nil
}

func (s *apiServer) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	err, endsWatches := s.err, s.endsWatches
	s.watchRequests++
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	after, _ := strconv.Atoi(o.ResourceVersion)
	events := make(chan watch.Event)
	go func() {
		defer close(events)
		for {
			event, changed, err := s.nextEvent(after)
			if event == nil && endsWatches {
				return
			}
			if err != nil {
				select {
				case events <- watch.Event{Type: watch.Error, Object: &err.ErrStatus}:
				case <-ctx.Done():
				}
				return
			}
			if event != nil {
				after = versionOf(event.Object)
				select {
				case events <- *event:
				case <-ctx.Done():
					return
				}
				continue
			}
			if changed == nil {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return &eventStream{events, cancel}, nil
}

// nextEvent returns the first event after a version, or a channel that is closed at the next change.
// Both are nil if the API server fails.
func (s *apiServer) nextEvent(after int) (*watch.Event, <-chan struct{}, *apierrors.StatusError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, nil, nil
	case len(s.history) == 0 && after < s.version:
		return nil, nil, errExpired
	}
	for _, event := range s.history {
		if versionOf(event.Object) > after {
			return &watch.Event{Type: event.Type, Object: event.Object.DeepCopyObject()}, nil, nil
		}
	}
	changed := make(chan struct{})
	s.watches = append(s.watches, changed)
	return nil, changed, nil
}

func versionOf(object runtime.Object) int {
	version, _ := strconv.Atoi(object.(*unstructured.Unstructured).GetResourceVersion())
	return version
}

type eventStream struct {
	events chan watch.Event
	cancel context.CancelFunc
}

func (e *eventStream) ResultChan() <-chan watch.Event { return e.events }
func (e *eventStream) Stop()                          { e.cancel() }

// recorder records the events and phases of a subscription.
type recorder struct {
	mu     sync.Mutex
	events []string
	phases []Phase
}

func (r *recorder) subscriber() Subscriber {
	return Subscriber{Handler: r, OnState: func(_, after State) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.phases = append(r.phases, after.Phase)
	}}
}

func (r *recorder) record(format string, objects ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, object := range objects {
		objects[i] = object.(*unstructured.Unstructured).GetName() + "@" + object.(*unstructured.Unstructured).GetResourceVersion()
	}
	r.events = append(r.events, fmt.Sprintf(format, objects...))
}

func (r *recorder) OnAdd(object any, isInitial bool) {
	if isInitial {
		r.record("initial %s", object)
		return
	}
	r.record("added %s", object)
}
func (r *recorder) OnUpdate(before, after any) { r.record("updated %s to %s", before, after) }
func (r *recorder) OnDelete(object any)        { r.record("deleted %s", object) }

// expect compares the sorted events since the last call.
func (r *recorder) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.events)
	if diff := cmp.Diff(want, r.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	r.events = nil
}

func (r *recorder) expectPhases(t *testing.T, want ...Phase) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, r.phases); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	r.phases = nil
}

func namesIn(t *testing.T, objects Objects) (names string, isUsable bool) {
	t.Helper()
	found, isUsable := objects.List("", everything)
	var all []string
	for _, object := range found {
		all = append(all, object.GetName())
	}
	slices.Sort(all)
	return strings.Join(all, " "), isUsable
}
