package opensearch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Manager runs a sink and a feed for each distinct back end.
type Manager struct {
	cache   *objectcache.Cache
	options Options
	limits  Limits

	// mu protects the fields below.
	mu       sync.Mutex
	runs     map[string]*backendRun
	selected map[string]Backend
	// ended has, for each back end, the channel that is closed when its last run has ended. A back end that is
	// selected again waits for it, so that two runs never write concurrently.
	ended map[string]chan struct{}
	// start starts a run. It is nil unless Run is active.
	start func(key string, run *backendRun)
}

// backendRun is the sink and the feed of one back end.
type backendRun struct {
	sink *Sink
	feed *feed.Feed
	stop context.CancelFunc
}

// State is the state of one back end.
type State struct {
	Backend Backend
	// Feed is the state of the feed, with the error if OpenSearch does not accept objects.
	Feed feed.State
	// Rejected is the number of objects that OpenSearch rejects for their content or size. RejectedExample
	// identifies one of them, with the reason.
	Rejected        int
	RejectedExample string
}

// Problem returns what is wrong with a cluster's objects in the back end, or "", for the status of a
// ResourceRegistry.
func (s State) Problem(cluster string) string {
	switch err := s.Feed.Clusters[cluster].Err; {
	case err != nil:
		return err.Error()
	case s.Rejected > 0:
		return fmt.Sprintf("OpenSearch %s rejects %d objects, for example %s", s.Backend, s.Rejected, s.RejectedExample)
	default:
		return ""
	}
}

// NewManager returns a manager without back ends.
func NewManager(cache *objectcache.Cache, options Options, limits Limits) *Manager {
	return &Manager{cache: cache, options: options, limits: limits, runs: map[string]*backendRun{}, ended: map[string]chan struct{}{}}
}

// Run runs the back ends until ctx ends. It returns after all of them have ended.
func (m *Manager) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	m.mu.Lock()
	m.start = func(key string, run *backendRun) {
		runContext, stop := context.WithCancel(ctx)
		previous, ended := m.ended[key], make(chan struct{})
		run.stop, m.ended[key] = stop, ended
		running.Go(func() {
			defer close(ended)
			if previous != nil {
				<-previous
			}
			run.run(runContext)
		})
	}
	for key, run := range m.runs {
		m.start(key, run)
	}
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.start = nil
}

// run stores objects until ctx ends.
func (r *backendRun) run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { r.sink.Watch(ctx) })
	r.feed.Run(ctx)
	watching.Wait()
	r.sink.connections.close()
}

// Select sets the back end of each member cluster that has one. If a cluster is missing in selected, its objects
// are removed from its previous back end, unless no other cluster uses that back end: then the back end stays
// unchanged.
func (m *Manager) Select(selected map[string]Backend) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.selected = maps.Clone(selected)
	clusters, backends := map[string]sets.Set[string]{}, map[string]Backend{}
	for cluster, backend := range selected {
		key := backend.key()
		if clusters[key] == nil {
			clusters[key], backends[key] = sets.New[string](), backend
		}
		clusters[key].Insert(cluster)
	}
	for key, run := range m.runs {
		if clusters[key] != nil {
			continue
		}
		if run.stop != nil {
			run.stop()
		}
		delete(m.runs, key)
	}
	for key, backend := range backends {
		if run := m.runs[key]; run != nil {
			run.sink.SetClusters(clusters[key])
			continue
		}
		m.runs[key] = m.newRun(key, backend, clusters[key])
		if m.start != nil {
			m.start(key, m.runs[key])
		}
	}
}

func (m *Manager) newRun(key string, backend Backend, clusters sets.Set[string]) *backendRun {
	sink := NewSink(backend, m.options, m.limits)
	sink.SetClusters(clusters)
	sink.isForeign = func(cluster, uuid string) bool { return m.isStoredByOther(key, cluster, uuid) }
	return &backendRun{sink: sink, feed: feed.New(m.cache, sink, m.limits.Feed)}
}

// isStoredByOther reports whether another sink stores a cluster's objects in the same OpenSearch cluster.
func (m *Manager) isStoredByOther(key, cluster, uuid string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	backend, selected := m.selected[cluster]
	if !selected || backend.key() == key || uuid == "" {
		return false
	}
	other := m.runs[backend.key()]
	return other != nil && other.sink.connections.lastUUID() == uuid
}

// States returns the states of all back ends, sorted by their addresses.
func (m *Manager) States() []State {
	m.mu.Lock()
	runs := slices.Collect(maps.Values(m.runs))
	m.mu.Unlock()
	states := make([]State, 0, len(runs))
	for _, run := range runs {
		states = append(states, run.state())
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Backend.key(), b.Backend.key()) })
	return states
}

// StateOf returns the state of a member cluster's back end, or false if it has none.
func (m *Manager) StateOf(cluster string) (State, bool) {
	m.mu.Lock()
	backend, selected := m.selected[cluster]
	run := m.runs[backend.key()]
	m.mu.Unlock()
	if !selected || run == nil {
		return State{}, false
	}
	return run.state(), true
}

func (r *backendRun) state() State {
	state := State{Backend: r.sink.backend, Feed: r.feed.State()}
	state.Rejected, state.RejectedExample = r.sink.Rejections()
	return state
}
