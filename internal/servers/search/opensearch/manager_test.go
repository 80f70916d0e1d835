package opensearch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/servers/search/opensearch"
)

func TestManagerSelect(t *testing.T) {
	s := newSetup(t)
	s.put(5)
	other := newFakeServer(t)
	node := s.server.AddNode(nil)
	a, b := backend(node), backend(other.AddNode(nil))
	if diff := cmp.Diff(a, opensearch.NewBackend(&searchv1alpha1.OpenSearchConfig{
		Addresses: []string{node.URL}, SecretRef: clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "os"},
	})); diff != "" {
		t.Errorf("back end (-want +got):\n%s", diff)
	}
	s.run(all(a))
	s.awaitEqual(s.server, "east", "west")

	// A cluster that moves is removed from its former back end.
	s.manager.Select(map[string]opensearch.Backend{"east": a, "west": b})
	s.awaitEqual(s.server, "east")
	s.awaitEqual(other, "west")

	// A back end that no cluster uses anymore is left as it is.
	s.manager.Select(map[string]opensearch.Backend{"east": a})
	s.cache.Put("west", newObject(pods, "later"))
	s.cache.Put("east", newObject(pods, "later"))
	s.awaitEqual(s.server, "east")
	if got := len(other.Documents("kubernetes-pod")); got != 5 {
		t.Errorf("the unused back end has %d documents", got)
	}
	if states := s.manager.States(); len(states) != 1 {
		t.Errorf("states: %+v", states)
	}
	if _, found := s.manager.StateOf("west"); found {
		t.Error("a cluster without back end has a state")
	}

	// It continues with the differences.
	s.manager.Select(map[string]opensearch.Backend{"east": a, "west": b})
	s.awaitEqual(other, "west")
}

func TestBackendsWithOneServerLeaveEachOther(t *testing.T) {
	s := newSetup(t)
	s.put(5)
	node, alias := s.server.AddNode(nil), s.server.AddNode(nil)
	s.run(map[string]opensearch.Backend{"east": backend(node), "west": backend(alias)})
	s.awaitEqual(s.server, "east", "west")
	s.awaitHealthy("east")
	s.awaitHealthy("west")
	written := s.server.Written()
	// A changed set of kinds makes both back ends look for documents to remove.
	for range 3 {
		cleanups := s.server.Requests("GET _mapping")
		s.cache.RemoveKind(configMaps.GroupVersionKind)
		s.cache.AddKind(configMaps)
		eventually(t, func() error {
			if got := s.server.Requests("GET _mapping") - cleanups; got < 2 {
				return fmt.Errorf("%d cleanups", got)
			}
			return nil
		})
	}
	s.awaitHealthy("east")
	s.awaitEqual(s.server, "east", "west")
	if got := s.server.Written() - written; got > 1 { // the ConfigMap
		t.Errorf("%d documents were written", got)
	}
}

func TestBackendDelaysNoOther(t *testing.T) {
	s := newSetup(t)
	s.limits.RequestTimeout = time.Minute
	s.put(20)
	hanging := newFakeServer(t)
	hanging.SetFaults(fakeFaults{Hang: true})
	node := hanging.AddNode(nil)
	stop := s.run(map[string]opensearch.Backend{"east": backend(s.server.AddNode(nil)), "west": backend(node)})
	s.awaitEqual(s.server, "east")
	s.cache.Put("east", newObject(pods, "later"))
	s.awaitEqual(s.server, "east")
	s.manager.States()
	s.manager.Select(map[string]opensearch.Backend{"east": s.manager.States()[0].Backend})
	stop() // a hanging request ends with the manager
}

// TestStoredEqualsCacheAfterFaults changes the cache at random while the server fails and loses data.
func TestStoredEqualsCacheAfterFaults(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			s := newSetup(t)
			s.limits.RequestTimeout = time.Second
			s.put(20)
			node := s.server.AddNode(nil)
			stop := s.run(all(backend(node)))
			for step := range 150 {
				name := fmt.Sprintf("pod-%d", random.IntN(20))
				if random.IntN(3) == 0 {
					s.cache.Delete("east", newObject(pods, name))
				} else {
					s.cache.Put("west", newObject(pods, name))
				}
				switch random.IntN(15) {
				case 0:
					s.server.SetFaults(randomFaults(random))
				case 1:
					s.server.LoseData()
				case 2:
					node.Stop()
					node.Restart()
				case 3:
					stop()
					stop = s.run(all(backend(node)))
				case 4:
					s.server.SetFaults(fakeFaults{})
					if step%2 == 0 {
						s.awaitEqual(s.server, "east", "west")
					}
				}
			}
			s.server.SetFaults(fakeFaults{})
			s.awaitEqual(s.server, "east", "west")
			s.awaitHealthy("west")
		})
	}
}

func randomFaults(random *rand.Rand) fakeFaults {
	faults := []fakeFaults{
		{Overloaded: random.IntN(10)}, {Full: true}, {Status: 503}, {Status: 429}, {MaxBody: 600}, {LoseHits: 2},
		{Item: func(id string) *fakeItemError {
			if len(id)%2 == 0 {
				return &fakeItemError{Status: 503, Type: "unavailable_shards_exception", Reason: "injected"}
			}
			return nil
		}},
	}
	return faults[random.IntN(len(faults))]
}

// A registry that is deleted removes its clusters from the cache, and its back end at the same time.
func TestDocumentsOfDeletedRegistryStay(t *testing.T) {
	s := newSetup(t)
	s.limits.Feed.RemoveAfter = 0 // the default
	s.put(5)
	stop := s.run(all(backend(s.server.AddNode(nil))))
	s.awaitEqual(s.server, "east", "west")
	s.cache.RemoveCluster("east", pods)
	s.cache.RemoveCluster("west", pods)
	s.cache.RemoveKind(configMaps.GroupVersionKind)
	s.manager.Select(nil)
	stop()
	if got := len(s.server.Documents("kubernetes-pod")) + len(s.server.Documents("kubernetes-configmap")); got != 11 {
		t.Errorf("%d documents are left", got)
	}
}
