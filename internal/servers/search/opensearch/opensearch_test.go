package opensearch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
	"karmada.io/karmada/internal/servers/search/opensearch"
)

func TestDocuments(t *testing.T) {
	secretKind := objectcachetest.Kind{GroupVersionKind: pods.GroupVersion().WithKind("Secret"), Resource: "secrets", Namespaced: true}
	tests := map[string]struct {
		kind   objectcachetest.Kind
		object string
		want   string
	}{
		"spec and status are texts, and other fields are not stored": {
			kind: pods,
			object: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","uid":"4f0c","resourceVersion":"7",
				"creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-01-02T03:04:06Z","generation":3,"labels":{"app":"web"},
				"annotations":{"a":"b"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"x","uid":"u"}]},
				"spec":{"nodeName":"n1","containers":[{"name":"c","image":"nginx:1.19"}]},"status":{"phase":"Running"},"data":{"x":"y"}}`,
			want: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","resourceVersion":"7",
				"creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-01-02T03:04:06Z","labels":{"app":"web"},
				"annotations":{"a":"b","resource.karmada.io/cached-from-cluster":"east"}},
				"spec":"{\"containers\":[{\"image\":\"nginx:1.19\",\"name\":\"c\"}],\"nodeName\":\"n1\"}","status":"{\"phase\":\"Running\"}"}`,
		},
		"an absent spec and status are null": {
			kind:   configMaps,
			object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","uid":"4f0c","resourceVersion":"7"},"data":{"x":"y"}}`,
			want: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","resourceVersion":"7",
				"annotations":{"resource.karmada.io/cached-from-cluster":"east"}},"spec":"null","status":"null"}`,
		},
		"the last applied manifest of a Secret is not stored": {
			kind: secretKind,
			object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"shop","uid":"4f0c","resourceVersion":"7",
				"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":\"x\"}}"}},"data":{"password":"x"}}`,
			want: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"shop","resourceVersion":"7",
				"annotations":{"resource.karmada.io/cached-from-cluster":"east"}},"spec":"null","status":"null"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.cache.AddKind(test.kind)
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON([]byte(test.object)); err != nil {
				t.Fatal(err)
			}
			s.cache.Put("east", object)
			s.run(all(backend(s.server.AddNode(nil))))
			s.awaitHealthy("east")
			index := "kubernetes-" + strings.ToLower(test.kind.Kind)
			document := s.server.Documents(index)["east_4f0c"]
			if diff := cmp.Diff(decodeAny(t, test.want), decodeAny(t, string(document.Source))); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
			if want := "owner_east_v1_" + test.kind.Kind; document.Routing != want {
				t.Errorf("routing %q, want %q", document.Routing, want)
			}
		})
	}
}

func decodeAny(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func TestSinkFollowsCache(t *testing.T) {
	s := newSetup(t)
	s.put(30)
	stop := s.run(all(backend(s.server.AddNode(nil))))
	s.awaitEqual(s.server, "east", "west")
	s.cache.Put("east", newObject(pods, "pod-3"))
	s.cache.Delete("west", newObject(pods, "pod-4"))
	s.awaitEqual(s.server, "east", "west")
	s.cache.RemoveCluster("east", pods)
	s.awaitEqual(s.server, "east", "west")
	s.awaitHealthy("west")
	eventually(t, func() error {
		if open := s.server.OpenScrolls(); open != 0 {
			return fmt.Errorf("%d scans are open", open)
		}
		return nil
	})
	stop()

	// While nothing runs, an object is deleted. A start removes only this object.
	s.cache.Delete("west", newObject(pods, "pod-5"))
	before := s.server.Written()
	stop = s.run(all(s.manager.States()[0].Backend))
	s.awaitEqual(s.server, "east", "west")
	s.awaitHealthy("west")
	stop()
	if written := s.server.Written() - before; written != 1 {
		t.Errorf("a start wrote %d documents instead of 1", written)
	}
	bulks := s.server.Requests("POST _bulk")
	scans := s.server.Requests("POST _search")
	stop = s.run(all(s.manager.States()[0].Backend))
	eventually(t, func() error {
		if got := s.server.Requests("POST _search") - scans; got < 4 {
			return fmt.Errorf("%d scans", got)
		}
		return nil
	})
	s.awaitHealthy("west")
	stop()
	if got := s.server.Requests("POST _bulk") - bulks; got != 0 {
		t.Errorf("a start without changes sent %d bulk requests", got)
	}
}

func TestFaults(t *testing.T) {
	tests := map[string]struct {
		faults fakeFaults
		// wantState is a part of the error in the state. It is empty if the fault is overcome.
		wantState string
	}{
		"a short overload is overcome":       {faults: fakeFaults{Overloaded: 4}},
		"pages that are lost are read again": {faults: fakeFaults{LoseHits: 3}},
		"a limit of the size of requests is overcome": {
			faults: fakeFaults{MaxBody: 1000},
		},
		"lasting overload is reported": {
			faults: fakeFaults{Overloaded: 1 << 30}, wantState: "OpenSearch is overloaded",
		},
		"a full disk is reported with a remedy": {
			faults: fakeFaults{Full: true}, wantState: "free disk space",
		},
		"a server error is reported":       {faults: fakeFaults{Status: 500}, wantState: "injected by the test"},
		"a proxy error is reported":        {faults: fakeFaults{Status: 502}, wantState: "status 502"},
		"a missing permission is reported": {faults: fakeFaults{Status: 403}, wantState: "permissions to create, write and search the indexes"},
		"a hanging server is reported": {
			faults: fakeFaults{Hang: true}, wantState: "deadline exceeded",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.limits.RequestTimeout = 100 * time.Millisecond
			if test.wantState == "" {
				s.limits.RequestTimeout = patience
			}
			s.put(10)
			s.server.SetFaults(test.faults)
			s.run(all(backend(s.server.AddNode(nil))))
			if test.wantState != "" {
				s.awaitState("east", test.wantState)
				s.server.SetFaults(fakeFaults{})
			}
			s.awaitEqual(s.server, "east", "west")
			s.awaitHealthy("east")
		})
	}
}

func TestItemsAreRetriedOrReported(t *testing.T) {
	attempts := map[string]int{}
	s := newSetup(t)
	s.put(10)
	s.server.SetFaults(fakeFaults{Item: func(id string) *fakeItemError {
		attempts[id]++ // the server calls this under its lock
		switch {
		case id == "east_east-Pod-default-pod-1":
			return &fakeItemError{Status: 400, Type: "mapper_parsing_exception", Reason: "failed to parse field"}
		case id == "east_east-Pod-default-pod-2" && attempts[id] < 3:
			return &fakeItemError{Status: 429, Type: "opensearch_rejected_execution_exception", Reason: "queue full"}
		case id == "west_west-Pod-default-pod-3" && attempts[id] < 3:
			return &fakeItemError{Status: 503, Type: "unavailable_shards_exception", Reason: "primary shard is not active"}
		}
		return nil
	}})
	stop := s.run(all(backend(s.server.AddNode(nil))))
	s.awaitHealthy("east")
	s.awaitHealthy("west")
	eventually(t, func() error {
		if got := len(s.server.Documents("kubernetes-pod")); got != 19 {
			return fmt.Errorf("%d documents", got)
		}
		return nil
	})
	state, _ := s.manager.StateOf("east")
	want := `Pod default/pod-1 of cluster "east": status 400: mapper_parsing_exception failed to parse field`
	if state.Rejected != 1 || state.RejectedExample != want || !strings.HasSuffix(state.Problem("east"), "rejects 1 objects, for example "+want) {
		t.Errorf("rejected: %d, %q, %q", state.Rejected, state.RejectedExample, state.Problem("east"))
	}
	s.server.SetFaults(fakeFaults{})
	s.cache.Put("east", newObject(pods, "pod-1"))
	s.awaitEqual(s.server, "east", "west")
	eventually(t, func() error {
		if state, _ := s.manager.StateOf("east"); state.Rejected != 0 {
			return fmt.Errorf("rejected: %d, %q", state.Rejected, state.RejectedExample)
		}
		return nil
	})
	stop()
	if attempts["east_east-Pod-default-pod-1"] != 1 || attempts["east_east-Pod-default-pod-0"] != 1 || attempts["east_east-Pod-default-pod-2"] != 3 {
		t.Errorf("attempts: %v", attempts)
	}
}

func TestLossOfData(t *testing.T) {
	tests := map[string]func(*fakeServer, *fakeNode){
		"all indexes are deleted":    func(server *fakeServer, _ *fakeNode) { server.LoseData() },
		"another OpenSearch answers": func(server *fakeServer, _ *fakeNode) { server.Replace() },
		"the server restarts without its data": func(server *fakeServer, node *fakeNode) {
			node.Stop()
			server.LoseData()
			node.Restart()
		},
	}
	for name, lose := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.put(10)
			node := s.server.AddNode(nil)
			s.run(all(backend(node)))
			s.awaitEqual(s.server, "east", "west")
			s.awaitHealthy("east")
			lose(s.server, node)
			// Nothing changes in the cache: the check finds the loss.
			s.awaitEqual(s.server, "east", "west")
			s.cache.Put("east", newObject(pods, "later"))
			s.awaitEqual(s.server, "east", "west")
		})
	}
}

func TestDocumentsOfOthers(t *testing.T) {
	const mappings = `{"properties":{"spec":{"type":"object","enabled":false},"status":{"type":"object","enabled":false}}}`
	legacy := func(cluster, name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"annotations":{"resource.karmada.io/cached-from-cluster":%q}},"spec":"{}","status":"{}"}`, name, cluster)
	}
	s := newSetup(t)
	s.put(10)
	s.server.CreateIndex("kubernetes-pod", mappings)
	s.server.CreateIndex("kubernetes-audit", `{"properties":{"message":{"type":"text"}}}`)
	s.server.Put("kubernetes-audit", "log", "", `{"message":"x"}`)
	s.server.Put("kubernetes-pod", "east-Pod-default-pod-1", "", legacy("east", "pod-1"))
	// Another installation can have a cluster with the same name.
	s.server.Put("kubernetes-pod", "gone", "", legacy("east", "gone"))
	s.server.Put("kubernetes-pod", "unknown-cluster", "", legacy("north", "x"))
	s.server.Put("kubernetes-pod", "no-annotation", "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`)
	s.server.Put("kubernetes-pod", "north_1", "other_north_v1_Pod", legacy("north", "x"))
	s.server.Put("kubernetes-pod", "south_1", "owner_south_v1_Pod", legacy("south", "x"))
	s.run(all(backend(s.server.AddNode(nil))))
	s.awaitEqual(s.server, "east", "west")
	s.awaitHealthy("east")
	eventually(t, func() error {
		documents := s.server.Documents("kubernetes-pod")
		for id, want := range map[string]bool{
			"east-Pod-default-pod-1": false, "east_east-Pod-default-pod-1": true, "gone": true, "south_1": false,
			"unknown-cluster": true, "no-annotation": true, "north_1": true,
		} {
			if _, found := documents[id]; found != want {
				return fmt.Errorf("document %s exists: %t", id, found)
			}
		}
		return nil
	})
	if len(s.server.Documents("kubernetes-audit")) != 1 {
		t.Error("a document of another index was deleted")
	}
}

// awaitRejected waits until the objects with the given names are the only ones of east that are not stored.
func (s *setup) awaitRejected(stored int, example string) {
	s.t.Helper()
	eventually(s.t, func() error {
		state, _ := s.manager.StateOf("east")
		if got := len(s.server.Documents("kubernetes-pod")); got != stored || state.Rejected != 1 || !strings.Contains(state.RejectedExample, example) {
			return fmt.Errorf("%d documents, state: %+v", got, state)
		}
		return nil
	})
	s.awaitHealthy("east")
}

func TestAnObjectThatCannotBeStoredStopsNoOther(t *testing.T) {
	tests := map[string]struct {
		change  func(*unstructured.Unstructured)
		faults  fakeFaults
		example string
	}{
		"an object whose labels are no texts": {
			change: func(o *unstructured.Unstructured) {
				o.Object["metadata"].(map[string]any)["labels"] = map[string]any{"a": int64(1)}
			},
			example: "decoding the Pod default/evil",
		},
		"an object whose UID is too long": {
			change: func(o *unstructured.Unstructured) { o.SetUID(types.UID(strings.Repeat("u", 600))) }, example: "at most 512",
		},
		"an object for which the server rejects the whole request": {
			change: func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "poison"}) },
			faults: fakeFaults{Poison: "poison"}, example: "Malformed",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.put(10)
			evil := newObject(pods, "evil")
			test.change(evil)
			s.cache.Put("east", evil)
			s.server.SetFaults(test.faults)
			s.run(all(backend(s.server.AddNode(nil))))
			s.awaitRejected(20, test.example)
		})
	}
}

func TestADocumentOfAnExistingInstallationStaysIfItsObjectIsRejected(t *testing.T) {
	s := newSetup(t)
	s.put(3)
	s.server.CreateIndex("kubernetes-pod", `{"properties":{"spec":{"type":"object","enabled":false},"status":{"type":"object","enabled":false}}}`)
	const legacy = "east-Pod-default-pod-1"
	s.server.Put("kubernetes-pod", legacy, "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-1","annotations":{"resource.karmada.io/cached-from-cluster":"east"}},"spec":"{}","status":"{}"}`)
	s.server.SetFaults(fakeFaults{Item: func(id string) *fakeItemError {
		if id == "east_"+legacy {
			return &fakeItemError{Status: 400, Type: "mapper_parsing_exception", Reason: "failed to parse field"}
		}
		return nil
	}})
	s.run(all(backend(s.server.AddNode(nil))))
	s.awaitRejected(6, "failed to parse")
	if _, found := s.server.Documents("kubernetes-pod")[legacy]; !found {
		t.Error("the document was deleted")
	}
}

func TestAnIndexBehindAnAliasIsNotComparedAgain(t *testing.T) {
	s := newSetup(t)
	s.put(3)
	s.run(all(backend(s.server.AddNode(nil))))
	s.awaitEqual(s.server, "east", "west")
	s.awaitHealthy("east")
	s.awaitHealthy("west")
	s.server.Rename("kubernetes-pod", "kubernetes-pod-1")
	// The cleanup after the start may still scan the index. A loss that is seen at each check would never
	// leave 20 checks without a scan.
	searches, checks := s.server.Requests("POST _search"), s.server.Requests("GET _settings")
	eventually(t, func() error {
		if got := s.server.Requests("POST _search"); got != searches {
			defer func() { searches, checks = got, s.server.Requests("GET _settings") }()
			return fmt.Errorf("%d scans after the index was moved behind an alias", got-searches)
		}
		if got := s.server.Requests("GET _settings") - checks; got < 20 {
			return fmt.Errorf("%d checks", got)
		}
		return nil
	})
}

func TestFailover(t *testing.T) {
	s := newSetup(t)
	s.put(5)
	first, second := s.server.AddNode(nil), s.server.AddNode(nil)
	s.run(all(backend(first, second)))
	s.awaitEqual(s.server, "east", "west")
	for i, node := range []*fakeNode{first, second, first} {
		node.Stop()
		s.cache.Put("east", newObject(pods, fmt.Sprintf("new-%d", i)))
		s.awaitEqual(s.server, "east", "west")
		node.Restart()
	}
}

func TestInvalidAddresses(t *testing.T) {
	tests := map[string]struct {
		addresses []string
		want      string
	}{
		"no address":                 {nil, "spec.backendStore.openSearch.addresses"},
		"an address without host":    {[]string{"http://"}, "no http or https URL"},
		"an address of another kind": {[]string{"ftp://user:secret@os:9200"}, `"ftp://os:9200" of OpenSearch is no http or https URL`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.put(1)
			s.run(all(opensearch.Backend{Addresses: test.addresses}))
			s.awaitState("east", test.want)
		})
	}
}
