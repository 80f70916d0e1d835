package memberproxy_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestObjectOfOneClusterIsForwarded(t *testing.T) {
	f := newThreeMembers(t)
	for _, pod := range []string{"log", "web"} {
		f.deliver("m3", "v1", "Pod", "a", pod)
	}
	front := f.front(t)
	tests := map[string]struct {
		method, path string
		want         clientResponse
	}{
		"a read":                             {"GET", "pods/db", clientResponse{200, "GET db  by alice"}},
		"a deletion":                         {"DELETE", "pods/log", clientResponse{200, "DELETE log  by alice"}},
		"a subresource":                      {"PATCH", "pods/log/status", clientResponse{200, "PATCH log status by alice"}},
		"logs, which are found by their Pod": {"GET", "pods/db/log", clientResponse{200, "GET db log by alice"}},
		"no cluster":                         {"GET", "pods/none", clientResponse{404, "resource not found or don't have permission to get it\n"}},
		"a deletion in no cluster":           {"DELETE", "pods/none", clientResponse{404, "resource not found or don't have permission to get it\n"}},
		"two clusters":                       {"GET", "pods/web", clientResponse{409, "conflict resource, exist in more than one cluster: m1,m3\n"}},
		"a deletion in two clusters":         {"DELETE", "pods/web", clientResponse{409, "conflict resource, exist in more than one cluster: m1,m3\n"}},
		"a creation, which needs a cluster":  {"POST", "pods", clientResponse{405, "create is not supported on resources of kind \"pods\"\n"}},
		"a watch of one name":                {"GET", "pods?watch=true&fieldSelector=metadata.name%3Ddb", clientResponse{405, "watch is not supported on resources of kind \"pods\"\n"}},
		"a watch of many":                    {"GET", "pods?watch=true", clientResponse{405, "watch is not supported on resources of kind \"pods\"\n"}},
		"a deletion of many":                 {"DELETE", "pods", clientResponse{405, "deletecollection is not supported on resources of kind \"pods\"\n"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := sendRequest(t, newRequest(t, test.method, front.URL+"/everywhere/api/v1/namespaces/a/"+test.path, "")); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if _, _, resp := upgrade(t, front, "/everywhere/api/v1/namespaces/a/pods/log/exec"); resp.StatusCode != http.StatusSwitchingProtocols { //nolint:bodyclose // the connection is closed by upgrade
		t.Errorf("terminal: got %s", resp.Status)
	}
}

// writes are requests for the Pod "web" that change it, by their description.
var writes = map[string]struct{ method, path string }{
	"an update":                     {"PUT", ""},
	"a patch":                       {"PATCH", ""},
	"a deletion":                    {"DELETE", ""},
	"a patch of the scale":          {"PATCH", "/scale"},
	"an eviction":                   {"POST", "/eviction"},
	"a command":                     {"POST", "/exec"},
	"a command over a WebSocket":    {"GET", "/exec"},
	"an attached terminal":          {"GET", "/attach"},
	"a forwarded port":              {"GET", "/portforward"},
	"a request to a server in it":   {"GET", "/proxy/restart"},
	"a request for another purpose": {"OPTIONS", ""},
}

// TestWriteNeedsTheAnswerOfEveryCluster checks that a cluster that may have the object prevents a
// write to another cluster.
func TestWriteNeedsTheAnswerOfEveryCluster(t *testing.T) {
	frozen := map[string]func(*testing.T, *fixture){
		"hangs": func(t *testing.T, f *fixture) {
			f.addMember(t, "m2", http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
		},
		"is unreachable":         func(t *testing.T, f *fixture) { f.addMember(t, "m2", nil).Spec.APIEndpoint = "https://127.0.0.1:1" },
		"has no credentials":     func(t *testing.T, f *fixture) { f.addMember(t, "m2", podServer()).Spec.ImpersonatorSecretRef = nil },
		"fails":                  func(t *testing.T, f *fixture) { f.addMember(t, "m2", failWith(http.StatusInternalServerError)) },
		"is overloaded":          func(t *testing.T, f *fixture) { f.addMember(t, "m2", failWith(http.StatusTooManyRequests)) },
		"returns something else": func(t *testing.T, f *fixture) { f.addMember(t, "m2", respondWith("<html>")) },
		"returns another object": func(t *testing.T, f *fixture) {
			f.addMember(t, "m2", respondWith(fmt.Sprintf(objectFormat, "v1", "Pod", "a", "db")))
		},
		"returns too many bytes":   func(t *testing.T, f *fixture) { f.addMember(t, "m2", respondWith(strings.Repeat(" ", 5<<20))) },
		"returns the wrong format": func(t *testing.T, f *fixture) { f.addMember(t, "m2", respondWith(`{"kind":"Pod","kind":"Pod"}`)) },
	}
	for name, freeze := range frozen {
		t.Run("a cluster that "+name, func(t *testing.T) {
			var received []string
			serve := podServer("web")
			f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if !isLookup(req) {
					received = append(received, req.Method+" "+req.URL.Path)
				}
				serve(w, req)
			}))
			f.deliver("m1", "v1", "Pod", "a", "web")
			freeze(t, f)
			f.proxy.SetLookupTimeout(testTimeout)
			front := f.front(t).URL + "/everywhere/api/v1/namespaces/a/pods/"
			for name, write := range writes {
				got := sendRequest(t, newRequest(t, write.method, front+"web"+write.path, ""))
				if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, `pods "web" in namespace "a": it is unknown whether clusters [m2] have it: `) || !strings.Contains(got.body, "clusters/NAME/proxy") {
					t.Errorf("%s: got %v", name, got)
				}
			}
			if got := sendRequest(t, newRequest(t, "GET", front+"none", "")); got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, "[m2]") {
				t.Errorf("a read of an object that no reachable cluster has: got %v", got)
			}
			if len(received) > 0 {
				t.Errorf("the other cluster received %q", received)
			}
			resp, err := http.DefaultClient.Do(newRequest(t, "GET", front+"web", ""))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK || !strings.Contains(resp.Header.Get("Warning"), "m2") {
				t.Errorf("a read of an object in another cluster: got %s with warning %q", resp.Status, resp.Header.Get("Warning"))
			}
		})
	}
}

func failWith(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// TestHostileMemberReceivesNoWrite uses a member that claims to have every object, and an honest member
// that has none.
func TestHostileMemberReceivesNoWrite(t *testing.T) {
	const pod, configMap = "/api/v1/namespaces/a/pods/web", "/api/v1/namespaces/a/configmaps/web"
	tests := map[string]struct {
		path    string
		claim   string
		deliver func(*fixture)
		code    int
	}{
		"nothing of the kind":            {pod, "ok", nil, 503},
		"an empty object":                {pod, "{}", nil, 503},
		"an object of another name":      {pod, fmt.Sprintf(objectFormat, "v1", "Pod", "a", "db"), nil, 503},
		"an object of another namespace": {pod, fmt.Sprintf(objectFormat, "v1", "Pod", "b", "web"), nil, 503},
		"an object of another version":   {pod, fmt.Sprintf(objectFormat, "v2", "Pod", "a", "web"), nil, 503},
		"a part of an object":            {pod, fmt.Sprintf(objectFormat, "meta.k8s.io/v1", "PartialObjectMetadata", "a", "web"), nil, 503},
		"the object":                     {pod, fmt.Sprintf(objectFormat, "v1", "Pod", "a", "web"), nil, 405},
		"the object without UID": {pod, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"web"}}`, func(f *fixture) {
			f.deliver("m1", "v1", "Pod", "a", "web")
		}, 405},
		"the object that is delivered to another cluster": {pod, fmt.Sprintf(objectFormat, "v1", "Pod", "a", "web"), func(f *fixture) {
			f.deliver("m2", "v1", "Pod", "a", "web")
		}, 405},
		"an object of the name of a delivered object of another kind": {configMap, fmt.Sprintf(objectFormat, "v1", "Pod", "a", "web"), func(f *fixture) {
			f.deliver("m1", "v1", "Pod", "a", "web")
		}, 405},
		"an object of the name of a delivered object of another group": {pod, fmt.Sprintf(objectFormat, "v1", "Pod", "a", "web"), func(f *fixture) {
			f.deliver("m1", "example.com/v1", "Pod", "a", "web")
		}, 405},
		"the object whose Work cannot be read": {pod, fmt.Sprintf(objectFormat, "v1", "Pod", "a", "web"), func(f *fixture) {
			f.worksErr = errors.New("etcd is down")
		}, 503},
	}
	for name, test := range tests {
		t.Run("claims "+name, func(t *testing.T) {
			var received []string
			f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				if !isLookup(req) {
					received = append(received, fmt.Sprintf("%s %s %s", req.Method, req.URL.Path, body))
				}
				fmt.Fprint(w, test.claim)
			}))
			f.addMember(t, "m2", podServer())
			if test.deliver != nil {
				test.deliver(f)
			}
			front := f.front(t)
			for name, write := range writes {
				got := sendRequest(t, newRequest(t, write.method, front.URL+"/everywhere"+test.path+write.path, "secret"))
				if got.code != test.code || !strings.Contains(got.body, `"web" in namespace "a"`) || !strings.Contains(got.body, "/proxy") && f.worksErr == nil {
					t.Errorf("%s: got %v, want %d", name, got, test.code)
				}
			}
			if len(received) > 0 {
				t.Errorf("the member received %q", received)
			}
		})
	}
}

// TestWriteOfClusterScopedObject writes objects without a namespace, and a Namespace, whose request has
// its name as the namespace.
func TestWriteOfClusterScopedObject(t *testing.T) {
	for path, kind := range map[string]string{"/api/v1/nodes/web": "Node", "/api/v1/namespaces/web": "Namespace"} {
		f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !isLookup(req) {
				fmt.Fprint(w, "written")
				return
			}
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":%q,"metadata":{"name":"web","uid":"0001"}}`, kind)
		}))
		front := f.front(t)
		if got := sendRequest(t, newRequest(t, "DELETE", front.URL+"/everywhere"+path, "")); got.code != http.StatusMethodNotAllowed {
			t.Errorf("%s, not delivered: got %v", path, got)
		}
		f.deliver("m1", "v1", kind, "", "web")
		if got := sendRequest(t, newRequest(t, "DELETE", front.URL+"/everywhere"+path, "")); got != (clientResponse{200, "written"}) {
			t.Errorf("%s: got %v", path, got)
		}
	}
}
