package opensearch_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
	"karmada.io/karmada/internal/servers/search/opensearch"
)

var (
	pods       = objectcachetest.Pods
	configMaps = objectcachetest.ConfigMaps
)

// patience limits the time for a state that must come.
const patience = 30 * time.Second

// secrets are the Secrets of the control plane.
type secrets struct {
	mu   sync.Mutex
	data map[string]map[string][]byte
}

func (s *secrets) set(name string, data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data == nil {
		s.data = map[string]map[string][]byte{}
	}
	s.data[name] = map[string][]byte{}
	for key, value := range data {
		s.data[name][key] = []byte(value)
	}
}

func (s *secrets) get(_ context.Context, namespace, name string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.data[namespace+"/"+name]), nil
}

// setup is a cache whose objects a manager stores in a test server.
type setup struct {
	t       testing.TB
	cache   *objectcachetest.Cache
	server  *fakeServer
	secrets *secrets
	limits  opensearch.Limits
	manager *opensearch.Manager
}

func newSetup(t testing.TB) *setup {
	s := &setup{t: t, cache: objectcachetest.New(t, pods, configMaps), server: newFakeServer(t), secrets: &secrets{}}
	s.limits = opensearch.Limits{
		RetryMin: time.Millisecond, CheckEvery: 20 * time.Millisecond, PageSize: 7,
		Feed: feed.Limits{
			BatchObjects: 20, RetryMin: time.Millisecond, RetryMax: 30 * time.Millisecond, PollEvery: 5 * time.Millisecond, RemoveAfter: time.Millisecond,
		},
	}
	return s
}

// run starts a manager with the back ends of clusters. stop ends it.
func (s *setup) run(selected map[string]opensearch.Backend) (stop func()) {
	ctx, cancel := context.WithCancel(klog.NewContext(s.t.Context(), logr.Discard()))
	s.manager = opensearch.NewManager(s.cache.Cache, opensearch.Options{Owner: "owner", Secret: s.secrets.get}, s.limits)
	s.manager.Select(selected)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.manager.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.t.Cleanup(stop)
	return stop
}

// all selects one back end for the clusters east and west.
func all(backend opensearch.Backend) map[string]opensearch.Backend {
	return map[string]opensearch.Backend{"east": backend, "west": backend}
}

// backend returns a back end with a Secret that does not exist unless the test sets it.
func backend(nodes ...*fakeNode) opensearch.Backend {
	b := opensearch.Backend{SecretNamespace: "ns", SecretName: "os"}
	for _, node := range nodes {
		b.Addresses = append(b.Addresses, node.URL)
	}
	return b
}

// eventually waits until check returns nil.
func eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.After(patience)
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %s: %v", patience, err)
		case <-ticker.C:
		}
	}
}

// awaitEqual waits until a server has the objects of clusters and no others of this owner.
func (s *setup) awaitEqual(server *fakeServer, clusters ...string) {
	s.t.Helper()
	eventually(s.t, func() error { return s.compare(server, clusters) })
}

func (s *setup) compare(server *fakeServer, clusters []string) error {
	wanted := map[string]string{}
	for _, kind := range s.cache.Kinds() {
		for _, cluster := range clusters {
			objects := kind.Snapshot().Cluster(cluster)
			if objects == nil {
				continue
			}
			for object := range objects.All("") {
				wanted[kind.GroupVersionKind().Kind+" "+cluster+"_"+string(object.UID())] = object.ResourceVersion()
			}
		}
	}
	for _, kind := range []objectcachetest.Kind{pods, configMaps} {
		for id, document := range server.Documents("kubernetes-" + strings.ToLower(kind.Kind)) {
			if !strings.HasPrefix(document.Routing, "owner_") {
				continue
			}
			key, version := kind.Kind+" "+id, decodeDocument(s.t, document).Metadata.ResourceVersion
			if wanted[key] != version {
				return fmt.Errorf("%s is stored with the version %q, wanted %q", key, version, wanted[key])
			}
			delete(wanted, key)
		}
	}
	if len(wanted) > 0 {
		return fmt.Errorf("%d objects are missing: %.200v; state: %+v", len(wanted), wanted, s.manager.States())
	}
	return nil
}

// awaitState waits until the state of the back end of a cluster contains a text.
func (s *setup) awaitState(cluster, text string) {
	s.t.Helper()
	eventually(s.t, func() error {
		state, _ := s.manager.StateOf(cluster)
		if state.Feed.Err == nil || !strings.Contains(state.Feed.Err.Error(), text) {
			return fmt.Errorf("wanted %q: %w", text, cmp.Or(state.Feed.Err, errors.New("no error")))
		}
		return nil
	})
}

// awaitHealthy waits until everything is stored and no error is left.
func (s *setup) awaitHealthy(cluster string) {
	s.t.Helper()
	eventually(s.t, func() error {
		state, _ := s.manager.StateOf(cluster)
		if _, isFollowed := state.Feed.Clusters[cluster]; !isFollowed || state.Feed.Err != nil || state.Feed.Behind > 0 {
			return fmt.Errorf("state: %+v", state)
		}
		return nil
	})
}

type storedDocument struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

func decodeDocument(t testing.TB, document fakeDocument) (d storedDocument) {
	t.Helper()
	if err := json.Unmarshal(document.Source, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func newObject(kind objectcachetest.Kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	object.SetName(name)
	object.SetNamespace("default")
	return object
}

// put stores Pods and a ConfigMap in two clusters.
func (s *setup) put(count int) {
	for i := range count {
		s.cache.Put("east", newObject(pods, fmt.Sprintf("pod-%d", i)))
		s.cache.Put("west", newObject(pods, fmt.Sprintf("pod-%d", i)))
	}
	s.cache.Put("east", newObject(configMaps, "settings"))
}
