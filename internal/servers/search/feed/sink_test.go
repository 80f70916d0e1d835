package feed_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

var errInjected = errors.New("injected by the test")

// stored is an object in a memorySink.
type stored struct {
	source  objectcache.Source
	version string
}

// memorySink stores objects in memory. Tests can make it fail.
type memorySink struct {
	mu      sync.Mutex
	objects map[feed.ID]stored
	latest  map[feed.ID]*objectcache.Object
	changed chan struct{}
	// failures, if not nil, determines which calls fail. An Apply that fails stores a part of its
	// changes.
	failures *rand.Rand
	// isBroken, if not nil, makes all calls for a source fail.
	isBroken func(objectcache.Source) bool
	// unwanted are the clusters that the sink does not want.
	unwanted map[string]bool
	// applied is the number of calls of Apply, and maxBatch is the largest number of changes in one
	// call.
	applied, maxBatch int
	// hang, if not nil, blocks Apply until it is closed.
	hang chan struct{}
}

func newMemorySink() *memorySink {
	return &memorySink{objects: map[feed.ID]stored{}, latest: map[feed.ID]*objectcache.Object{}, changed: make(chan struct{}), unwanted: map[string]bool{}}
}

func (s *memorySink) Name() string { return "memory" }

func (s *memorySink) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *memorySink) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *memorySink) Wants(source objectcache.Source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unwanted[source.Cluster]
}

func (s *memorySink) setWanted(cluster string, wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwanted[cluster] = !wanted
	s.notify()
}

func (s *memorySink) loseData(keep func(feed.ID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.objects, func(id feed.ID, _ stored) bool { return !keep(id) })
	s.notify()
}

func (s *memorySink) fails(source objectcache.Source) bool {
	return s.failures != nil && s.failures.IntN(3) == 0 || s.isBroken != nil && s.isBroken(source)
}

func (s *memorySink) Apply(ctx context.Context, changes []feed.Change) error {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-hang:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied++
	s.maxBatch = max(s.maxBatch, len(changes))
	for _, change := range changes {
		switch {
		case s.fails(change.Source):
			return errInjected
		case change.Object == nil:
			delete(s.objects, change.ID)
		default:
			s.objects[change.ID] = stored{source: change.Source, version: change.Object.ResourceVersion()}
			s.latest[change.ID] = change.Object
		}
	}
	return nil
}

func (s *memorySink) Stored(_ context.Context, source objectcache.Source, yield func(feed.ID, string) error) error {
	s.mu.Lock()
	if s.fails(source) {
		s.mu.Unlock()
		return errInjected
	}
	objects := maps.Clone(s.objects)
	s.mu.Unlock()
	for id, object := range objects {
		if object.source.Cluster != source.Cluster || object.source.Kind != source.Kind {
			continue
		}
		if err := yield(id, object.version); err != nil {
			return err
		}
	}
	return nil
}

func (s *memorySink) Sources(context.Context) ([]objectcache.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures != nil && s.failures.IntN(3) == 0 {
		return nil, errInjected
	}
	sources := map[objectcache.Source]bool{}
	for _, object := range s.objects {
		// Only cluster and kind are needed.
		sources[objectcache.Source{Cluster: object.source.Cluster, Kind: object.source.Kind}] = true
	}
	var list []objectcache.Source
	for source := range sources {
		list = append(list, source)
	}
	return list, nil
}

func (s *memorySink) contents() map[feed.ID]stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.objects)
}

// values returns the objects that were stored last.
func (s *memorySink) values() map[feed.ID]*objectcache.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.latest)
}

func (s *memorySink) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied
}

// cached returns the objects that the sink must have. Objects of sources that were never listed stay in
// the sink unchanged.
func cached(cache *objectcachetest.Cache, sink *memorySink) map[feed.ID]stored {
	objects := map[feed.ID]stored{}
	before := sink.contents()
	for _, kind := range cache.Kinds() {
		for _, cluster := range kind.Snapshot().Clusters() {
			source := *cluster.Source()
			if !sink.Wants(source) {
				continue
			}
			if state, _, _ := cluster.State(); state == objectcache.Waiting {
				for id, object := range before {
					if object.source == source {
						objects[id] = object
					}
				}
				continue
			}
			for object := range cluster.All("") {
				objects[feed.IDOf(object)] = stored{source: source, version: object.ResourceVersion()}
			}
		}
	}
	return objects
}

func checkEqual(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
	t.Helper()
	if diff := cmp.Diff(cached(cache, sink), sink.contents(), cmp.AllowUnexported(stored{})); diff != "" {
		t.Errorf("the sink differs from the cache (-cache +sink):\n%s", diff)
	}
}

// limits are the feeds' limits in tests.
var limits = feed.Limits{BatchObjects: 4, RetryMax: 10 * time.Second}

// start runs a feed until the returned function is called.
func start(t *testing.T, cache *objectcachetest.Cache, sink feed.Sink) (f *feed.Feed, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
	f = feed.New(cache.Cache, sink, limits)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	return f, func() {
		cancel()
		<-done
	}
}

func newObject(kind objectcachetest.Kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	object.SetName(name)
	if kind.Namespaced {
		object.SetNamespace("default")
	}
	return object
}
