package proxying_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
	"karmada.io/karmada/internal/servers/search/proxying"
)

func newTwoPods(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"), pod("a", "both"))
	f.put("m2", pod("a", "p2"), pod("a", "both"))
	return f
}

func TestGet(t *testing.T) {
	for name, path := range map[string]string{
		"from the member": "/api/v1/namespaces/a/pods/p2", "from the cache": "/api/v1/namespaces/a/pods/p2?resourceVersion=0",
	} {
		t.Run(name, func(t *testing.T) {
			f := newTwoPods(t)
			r := f.send(path)
			if r.err != nil {
				t.Fatal(r.err)
			}
			got := unstructured.Unstructured{}
			if err := json.Unmarshal(r.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if want := combinedversion.New(map[string]string{"m2": "101"}).String(); got.GetResourceVersion() != want {
				t.Errorf("version %s, want %s", got.GetResourceVersion(), want)
			}
			if got.GetAnnotations()["resource.karmada.io/cached-from-cluster"] != "m2" || got.GetName() != "p2" {
				t.Errorf("got %v", got)
			}
			if asked := len(f.members["m1"].queries); asked != 0 {
				t.Errorf("m1 was asked %d times", asked)
			}
			if asked := len(f.members["m2"].queries); (asked == 0) != strings.Contains(path, "=0") {
				t.Errorf("m2 was asked %d times", asked)
			}
		})
	}
}

func TestGetErrors(t *testing.T) {
	tests := map[string]struct {
		path    string
		prepare func(*fixture)
		strict  bool
		want    func(error) bool
		message string
	}{
		"no cluster has the object":       {path: "/api/v1/namespaces/a/pods/none", want: apierrors.IsNotFound, message: `pods "none" not found`},
		"another namespace":               {path: "/api/v1/namespaces/b/pods/p1", want: apierrors.IsNotFound, message: "not found"},
		"two clusters have the object":    {path: "/api/v1/namespaces/a/pods/both", want: apierrors.IsConflict, message: "ambiguous objects in clusters [m1, m2]"},
		"a namespace without a registry":  {path: "/api/v1/namespaces/a/pods/p1", prepare: restrict("m1", "b"), want: apierrors.IsNotFound, message: "not found"},
		"the member does not answer":      {path: "/api/v1/namespaces/a/pods/p1", prepare: failOne, want: apierrors.IsServiceUnavailable, message: "no route"},
		"every cluster denies the object": {path: "/api/v1/namespaces/a/pods/p1", prepare: denyGet("m1", "m2"), want: apierrors.IsForbidden, message: `"alice" cannot get`},
		"every cluster denies a missing object in the same way": {
			path: "/api/v1/namespaces/a/pods/none", prepare: denyGet("m1", "m2"), want: apierrors.IsForbidden, message: `"alice" cannot get`,
		},
		"only the cluster of the object denies it": {path: "/api/v1/namespaces/a/pods/p1", prepare: denyGet("m1"), want: apierrors.IsNotFound, message: "not found"},
		"the permissions in the cluster of the object are unknown": {
			path: "/api/v1/namespaces/a/pods/p1", prepare: func(f *fixture) { f.broken["m1"] = true }, want: apierrors.IsServiceUnavailable, message: "m1",
		},
		"a cluster that is not cached yet does not answer": {
			path: "/api/v1/namespaces/a/pods/none", prepare: addSilentCluster, want: apierrors.IsServiceUnavailable, message: "m3",
		},
		"a cluster that is not cached yet does not answer, in strict mode": {
			path: "/api/v1/namespaces/a/pods/p1", prepare: addSilentCluster, strict: true, want: apierrors.IsServiceUnavailable, message: "m3",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newTwoPods(t)
			if test.prepare != nil {
				test.prepare(f)
			}
			var changes []func(*http.Request)
			if test.strict {
				changes = append(changes, strict)
			}
			r := f.send(test.path, changes...)
			if r.err == nil || !test.want(r.err) || !strings.Contains(r.err.Error(), test.message) {
				t.Errorf("error %v, want %q", r.err, test.message)
			}
		})
	}
}

func denyGet(clusters ...string) func(*fixture) {
	return func(f *fixture) {
		for _, cluster := range clusters {
			f.denied["alice get pods "+cluster] = true
		}
	}
}

// addSilentCluster adds a cluster that was never listed and does not respond.
func addSilentCluster(f *fixture) { addUncached(f, &fakeMember{err: errors.New("no answer")}) }

// addUncached adds a cluster that was never listed.
func addUncached(f *fixture, member *fakeMember) {
	f.members["m3"] = member
	f.AddCluster("m3", objectcachetest.Pods)
	f.SetState("m3", objectcachetest.Pods, objectcache.Waiting, "connection refused")
}

func TestAmbiguityConcernsOnlyReadableObjects(t *testing.T) {
	f := newTwoPods(t)
	denyGet("m1")(f)
	r := f.send("/api/v1/namespaces/a/pods/both")
	if r.err != nil || !strings.Contains(r.Body.String(), `"m2"`) {
		t.Errorf("error %v, body %s", r.err, r.Body)
	}
}

func TestObjectOfAClusterThatIsNotCachedYet(t *testing.T) {
	f := newTwoPods(t)
	addUncached(f, &fakeMember{version: 7, objects: []*unstructured.Unstructured{pod("a", "p3")}})
	r := f.send("/api/v1/namespaces/a/pods/p3")
	if r.err != nil || !strings.Contains(r.Body.String(), `"m3"`) {
		t.Errorf("error %v, body %s", r.err, r.Body)
	}
}

func TestForward(t *testing.T) {
	combined := combinedversion.New(map[string]string{"m1": "55", "m2": "9"}).String()
	tests := map[string]struct {
		request string
		change  func(*http.Request)
		want    string
	}{
		"an update gets the version of the cluster and loses the annotation": {
			"PUT /api/v1/namespaces/a/pods/p2",
			body("application/json", `{"metadata":{"resourceVersion":"`+combined+`","annotations":{"resource.karmada.io/cached-from-cluster":"m2","x":"y"}},"n":12345678901234567890}`),
			`alice m2 PUT /api/v1/namespaces/a/pods/p2 {"metadata":{"resourceVersion":"9","annotations":{"x":"y"}},"n":12345678901234567890}`,
		},
		"a version of the cluster itself stays": {
			"PUT /api/v1/namespaces/a/pods/p2/status", body("application/json", `{"metadata":{"resourceVersion":"77"}}`),
			`alice m2 PUT /api/v1/namespaces/a/pods/p2/status {"metadata":{"resourceVersion":"77"}}`,
		},
		"YAML becomes JSON": {
			"PUT /api/v1/namespaces/a/pods/p2", body("application/yaml", "metadata:\n  resourceVersion: "+combined+"\n"),
			`alice m2 PUT /api/v1/namespaces/a/pods/p2 {"metadata":{"resourceVersion":"9"}}`,
		},
		"a body that is no JSON is forwarded unchanged": {
			"PUT /api/v1/namespaces/a/pods/p2", body("application/vnd.kubernetes.protobuf", "k8s\x00\x01"),
			"alice m2 PUT /api/v1/namespaces/a/pods/p2 k8s\x00\x01",
		},
		"a patch with a combined version": {
			"PATCH /api/v1/namespaces/a/pods/p1", body("application/merge-patch+json", `{"metadata":{"resourceVersion":"`+combined+`"}}`),
			`alice m1 PATCH /api/v1/namespaces/a/pods/p1 {"metadata":{"resourceVersion":"55"}}`,
		},
		"a JSON patch": {
			"PATCH /api/v1/namespaces/a/pods/p1", body("application/json-patch+json", `[{"op":"remove","path":"/x"}]`),
			`alice m1 PATCH /api/v1/namespaces/a/pods/p1 [{"op":"remove","path":"/x"}]`,
		},
		"the preconditions of a deletion": {
			"DELETE /api/v1/namespaces/a/pods/p1", body("application/json", `{"preconditions":{"resourceVersion":"`+combined+`"}}`),
			`alice m1 DELETE /api/v1/namespaces/a/pods/p1 {"preconditions":{"resourceVersion":"55"}}`,
		},
		"logs":                       {"/api/v1/namespaces/a/pods/p2/log?follow=true", nil, "alice m2 GET /api/v1/namespaces/a/pods/p2/log "},
		"exec":                       {"POST /api/v1/namespaces/a/pods/p2/exec?command=ls", nil, "alice m2 POST /api/v1/namespaces/a/pods/p2/exec "},
		"another kind":               {"/api/v1/secrets", nil, "alice karmada GET /api/v1/secrets"},
		"the discovery":              {"/apis", nil, "alice karmada GET /apis"},
		"the creation of other kind": {"POST /api/v1/namespaces/a/secrets", nil, "alice karmada POST /api/v1/namespaces/a/secrets"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newTwoPods(t)
			var changes []func(*http.Request)
			if test.change != nil {
				changes = append(changes, test.change)
			}
			if r := f.send(test.request, changes...); r.err != nil {
				t.Fatal(r.err)
			}
			if diff := cmp.Diff([]string{test.want}, f.forwarded); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestForwardErrors(t *testing.T) {
	for request, want := range map[string]func(error) bool{
		"POST /api/v1/namespaces/a/pods":          apierrors.IsMethodNotSupported,
		"DELETE /api/v1/namespaces/a/pods":        apierrors.IsMethodNotSupported,
		"DELETE /api/v1/namespaces/a/pods/none":   apierrors.IsNotFound,
		"DELETE /api/v1/namespaces/a/pods/both":   apierrors.IsConflict,
		"/api/v1/namespaces/a/pods/both/log":      apierrors.IsConflict,
		"POST /api/v1/namespaces/a/pods/p2/evict": apierrors.IsForbidden,
	} {
		t.Run(request, func(t *testing.T) {
			f := newTwoPods(t)
			f.denied["alice create pods/evict m2"], f.denied["alice create pods/evict m1"] = true, true
			r := f.send(request)
			if r.err == nil || !want(r.err) {
				t.Errorf("error %v", r.err)
			}
			if len(f.forwarded) > 0 {
				t.Errorf("forwarded %q", f.forwarded)
			}
		})
	}
}

// TestWriteNeedsKnownObjectsOfAllClusters checks that a write is sent to no cluster while another
// cluster may have the object.
func TestWriteNeedsKnownObjectsOfAllClusters(t *testing.T) {
	for name, prepare := range map[string]func(*fixture){
		"does not answer": addSilentCluster,
		"fails":           func(f *fixture) { addUncached(f, &fakeMember{code: http.StatusInternalServerError}) },
		"returns 404 without the name of the object": func(f *fixture) { addUncached(f, &fakeMember{code: http.StatusNotFound}) },
		"is not ready": func(f *fixture) {
			f.members["m3"] = &fakeMember{}
			f.SetState("m3", objectcachetest.Pods, objectcache.Stale, "the cluster is not ready")
		},
		"claims an object that is not cached": func(f *fixture) {
			addUncached(f, &fakeMember{objects: []*unstructured.Unstructured{pod("a", "p2"), pod("a", "none")}})
		},
		"claims another object": func(f *fixture) {
			addUncached(f, &fakeMember{raw: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}`})
		},
		"claims another kind": func(f *fixture) {
			addUncached(f, &fakeMember{raw: `{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"a","name":"p2"}}`})
		},
		"claims no object":                    func(f *fixture) { addUncached(f, &fakeMember{raw: "ok"}) },
		"hangs, while its watch seems to run": func(f *fixture) { addQuietlyWatched(f, &fakeMember{hangs: true}) },
		"fails, while its watch seems to run": func(f *fixture) { addQuietlyWatched(f, &fakeMember{err: errors.New("connection refused")}) },
		"returns an object that its watch has not returned yet": func(f *fixture) {
			addQuietlyWatched(f, &fakeMember{objects: []*unstructured.Unstructured{pod("a", "p2"), pod("a", "none")}})
		},
		"lists the object without UID": func(f *fixture) {
			writer := f.AddCluster("m3", objectcachetest.Pods)
			writer.Replace(nil, "1")
			for _, name := range []string{"p2", "none"} {
				object, err := writer.Encode(pod("a", name))
				if err != nil {
					f.t.Fatal(err)
				}
				writer.Set(object)
			}
		},
	} {
		t.Run("a cluster that "+name, func(t *testing.T) {
			f := newTwoPods(t)
			prepare(f)
			for _, write := range []string{
				"PUT p2", "PATCH p2/status", "DELETE p2", "DELETE none", "POST p2/exec", "POST p2/eviction",
				"GET p2/exec", "GET p2/attach", "GET p2/portforward", "GET p2/proxy/restart",
			} {
				r := f.send(strings.Replace(write, " ", " /api/v1/namespaces/a/pods/", 1), body("application/json", "{}"))
				want := `in namespace "a": it is unknown whether clusters [m3] have it: cluster "m3": `
				if !apierrors.IsServiceUnavailable(r.err) || !strings.Contains(r.err.Error(), want) {
					t.Errorf("%s: error %v", write, r.err)
				}
			}
			if len(f.forwarded) > 0 {
				t.Errorf("forwarded %q", f.forwarded)
			}
		})
	}
}

// addQuietlyWatched adds a cluster whose cached list has no objects, and whose watch is up to date as
// far as the cache knows.
func addQuietlyWatched(f *fixture, member *fakeMember) {
	f.AddCluster("m3", objectcachetest.Pods).Replace(nil, "1")
	f.SetState("m3", objectcachetest.Pods, objectcache.Current, "")
	f.members["m3"] = member
	f.configure(proxying.Limits{Lookup: 50 * time.Millisecond})
}

// TestWriteIfUncachedClusterDoesNotHaveTheObject checks that a cluster that is not cached yet does not
// prevent a write if it responds that it does not have the object.
func TestWriteIfUncachedClusterDoesNotHaveTheObject(t *testing.T) {
	for name, member := range map[string]*fakeMember{"not found": {}, "forbidden": {code: http.StatusForbidden}} {
		f := newTwoPods(t)
		addUncached(f, member)
		if r := f.send("DELETE /api/v1/namespaces/a/pods/p2"); r.err != nil || len(f.forwarded) != 1 {
			t.Errorf("%s: error %v, forwarded %q", name, r.err, f.forwarded)
		}
	}
}

// TestReadDespiteUnknownCluster checks that an unknown cluster adds a warning to a read, and that the
// response for an object that no other cluster has is not NotFound.
func TestReadDespiteUnknownCluster(t *testing.T) {
	for name, prepare := range map[string]func(*fixture){
		"does not answer": addSilentCluster,
		"is not ready": func(f *fixture) {
			f.SetState("m3", objectcachetest.Pods, objectcache.Stale, "the cluster is not ready")
		},
	} {
		t.Run("a cluster that "+name, func(t *testing.T) {
			f := newTwoPods(t)
			prepare(f)
			for _, path := range []string{"/api/v1/namespaces/a/pods/p2", "/api/v1/namespaces/a/pods/p2/log"} {
				if r := f.send(path); r.err != nil || !strings.Contains(r.Header().Get("Warning"), "m3") {
					t.Errorf("%s: error %v, warning %q", path, r.err, r.Header().Get("Warning"))
				}
			}
			r := f.send("/api/v1/namespaces/a/pods/none")
			if !apierrors.IsServiceUnavailable(r.err) || !strings.Contains(r.err.Error(), "[m3]") {
				t.Errorf("a missing object: error %v", r.err)
			}
		})
	}
}

// TestFrozenClusterPreventsWrite checks that an object's copy in one cluster is not written while the
// caller's permissions in the other copy's cluster are unknown.
func TestFrozenClusterPreventsWrite(t *testing.T) {
	f := newTwoPods(t)
	f.broken["m1"] = true
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		r := f.send(method+" /api/v1/namespaces/a/pods/both", body("application/json", "{}"))
		if !apierrors.IsServiceUnavailable(r.err) || !strings.Contains(r.err.Error(), "clusters [m1]") {
			t.Errorf("%s: error %v", method, r.err)
		}
	}
	if len(f.forwarded) > 0 {
		t.Errorf("forwarded %q", f.forwarded)
	}
}

// TestVersionOfAnotherCluster checks that a write with the version of another cluster's object does not
// become unconditional.
func TestVersionOfAnotherCluster(t *testing.T) {
	f := newTwoPods(t)
	other := combinedversion.New(map[string]string{"m1": "55"}).String()
	r := f.send("PUT /api/v1/namespaces/a/pods/p2", body("application/json", `{"metadata":{"resourceVersion":"`+other+`"}}`))
	if !apierrors.IsConflict(r.err) || len(f.forwarded) > 0 {
		t.Errorf("error %v, forwarded %q", r.err, f.forwarded)
	}
}

// TestPathStaysInTheCluster checks that no path leaves a cluster's endpoint.
func TestPathStaysInTheCluster(t *testing.T) {
	f := newTwoPods(t)
	r := f.send("/api/v1/namespaces/a/pods/p1/proxy/../../../../../../../other")
	if !apierrors.IsBadRequest(r.err) || len(f.forwarded) > 0 {
		t.Errorf("error %v, forwarded %q", r.err, f.forwarded)
	}
}

// TestNestedProxyPathsAreRejected checks that the global proxy forwards no request to another control
// plane proxy, and thus not to itself.
func TestNestedProxyPathsAreRejected(t *testing.T) {
	for _, path := range []string{
		"/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy/api/v1/pods", "//apis/search.karmada.io/v1alpha1//proxying/karmada/proxy",
		"/apis/search%252Ekarmada.io/v1alpha1/proxying/karmada/proxy", "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/pods",
		"/api/v1/namespaces/a/pods/p1/proxy/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy/api",
	} {
		f := newTwoPods(t)
		r := f.send(path)
		if !apierrors.IsBadRequest(r.err) || len(f.forwarded) > 0 {
			t.Errorf("%s: error %v, forwarded %q", path, r.err, f.forwarded)
		}
	}
}

func TestTooLargeBody(t *testing.T) {
	f := newTwoPods(t)
	r := f.send("PUT /api/v1/namespaces/a/pods/p2", body("application/json", `{"x":"`+strings.Repeat("x", 4<<20)+`"}`))
	if !apierrors.IsRequestEntityTooLargeError(r.err) || len(f.forwarded) > 0 {
		t.Errorf("error %v", r.err)
	}
}

func TestResponsesToWrites(t *testing.T) {
	object := `{"kind":"Pod","metadata":{"name":"p2","resourceVersion":"12"}}`
	tests := map[string]struct {
		code            int
		mediaType, text string
		want            string
	}{
		"an object":      {200, "application/json", object, `{"kind":"Pod","metadata":{"annotations":{"resource.karmada.io/cached-from-cluster":"m2"},"name":"p2","resourceVersion":"` + versionOfM2 + `"}}`},
		"a Status":       {200, "application/json", `{"kind":"Status","status":"Success","metadata":{}}`, `{"kind":"Status","status":"Success","metadata":{}}`},
		"a conflict":     {409, "application/json", object, object},
		"another format": {200, "application/yaml", object, object},
		"no JSON":        {200, "application/json", "{", "{"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newTwoPods(t)
			f.respond = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.mediaType)
				w.WriteHeader(test.code)
				for _, part := range []string{test.text[:1], test.text[1:]} {
					_, _ = w.Write([]byte(part))
				}
			}
			r := f.send("PUT /api/v1/namespaces/a/pods/p2", body("application/json", "{}"))
			if r.Code != test.code || r.Body.String() != test.want {
				t.Errorf("got %d %s, want %s", r.Code, r.Body, test.want)
			}
		})
	}
}

// versionOfM2 is the combined version that contains m2 at 12.
const versionOfM2 = "eyJtMiI6IjEyIn0"
