package memberproxy_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

func TestObjectOfOneClusterIsForwarded(t *testing.T) {
	f := newThreeMembers(t)
	for _, pod := range []string{"log", "web"} {
		f.deliver("m3", "v1", "Pod", "a", pod)
	}
	front := f.front(t)
	notFound := clientResponse{404, "resource not found or don't have permission to get it\n"}
	conflict := clientResponse{409, "conflict resource, exist in more than one cluster: m1,m3\n"}
	notSupported := func(verb string) clientResponse {
		return clientResponse{405, verb + " is not supported on resources of kind \"pods\"\n"}
	}
	tests := map[string]struct {
		method, path string
		want         clientResponse
	}{
		"a read":                             {"GET", "pods/db", clientResponse{200, "GET db  by alice"}},
		"a deletion":                         {"DELETE", "pods/log", clientResponse{200, "DELETE log  by alice"}},
		"a subresource":                      {"PATCH", "pods/log/status", clientResponse{200, "PATCH log status by alice"}},
		"logs, which are found by their Pod": {"GET", "pods/db/log", clientResponse{200, "GET db log by alice"}},
		"no cluster":                         {"GET", "pods/none", notFound},
		"a deletion in no cluster":           {"DELETE", "pods/none", notFound},
		"two clusters":                       {"GET", "pods/web", conflict},
		"a deletion in two clusters":         {"DELETE", "pods/web", conflict},
		"a creation, which needs a cluster":  {"POST", "pods", notSupported("create")},
		"a watch of one name":                {"GET", "pods?watch=true&fieldSelector=metadata.name%3Ddb", notSupported("watch")},
		"a watch of many":                    {"GET", "pods?watch=true", notSupported("watch")},
		"a deletion of many":                 {"DELETE", "pods", notSupported("deletecollection")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			url := front.URL + "/everywhere/api/v1/namespaces/a/" + test.path
			if got := sendRequest(t, newRequest(t, test.method, url, "")); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if _, _, resp := upgrade(t, front, "/everywhere/api/v1/namespaces/a/pods/log/exec"); resp.StatusCode != http.StatusSwitchingProtocols { //nolint:bodyclose // the connection is closed by upgrade
		t.Errorf("terminal: got %s", resp.Status)
	}
}

// writes maps descriptions to requests that change the Pod "web".
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

// unknownMembers add the member m2, whose response does not show whether it has the Pod "web".
var unknownMembers = map[string]func(*testing.T, *fixture){
	"hangs": func(t *testing.T, f *fixture) {
		f.addMember(t, "m2", http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	},
	"is unreachable":     func(t *testing.T, f *fixture) { f.addMember(t, "m2", nil).Spec.APIEndpoint = "https://127.0.0.1:1" },
	"has no credentials": func(t *testing.T, f *fixture) { f.addMember(t, "m2", podServer()).Spec.ImpersonatorSecretRef = nil },
	"fails":              func(t *testing.T, f *fixture) { f.addMember(t, "m2", failWith(http.StatusInternalServerError)) },
	"is overloaded":      func(t *testing.T, f *fixture) { f.addMember(t, "m2", failWith(http.StatusTooManyRequests)) },
	"returns 404 like a gateway": func(t *testing.T, f *fixture) {
		f.addMember(t, "m2", http.NotFoundHandler()).Status.APIEnablements = enable("pods")
	},
	"returns 404 like a gateway, also to discovery": func(t *testing.T, f *fixture) { f.addMember(t, "m2", http.NotFoundHandler()) },
	"returns 404 like a gateway, while its list of APIs is incomplete": func(t *testing.T, f *fixture) {
		status := &f.addMember(t, "m2", http.NotFoundHandler()).Status
		status.APIEnablements, status.Conditions = enableIn("apps/v1", "deployments"), completeAPIs(metav1.ConditionFalse)
	},
	"returns something else": func(t *testing.T, f *fixture) { f.addMember(t, "m2", respondWith("<html>")) },
	"returns another object": func(t *testing.T, f *fixture) {
		f.addMember(t, "m2", respondWith(fmt.Sprintf(objectFormat, "v1", "Pod", "a", "db")))
	},
	"returns too many bytes":   func(t *testing.T, f *fixture) { f.addMember(t, "m2", respondWith(strings.Repeat(" ", 5<<20))) },
	"returns the wrong format": func(t *testing.T, f *fixture) { f.addMember(t, "m2", respondWith(`{"kind":"Pod","kind":"Pod"}`)) },
}

// enable returns the APIs of a member that serves one resource in the version v1.
func enable(resource string) []clusterv1alpha1.APIEnablement { return enableIn("v1", resource) }

// enableIn returns the APIs of a member that serves one resource in the given group version.
func enableIn(groupVersion, resource string) []clusterv1alpha1.APIEnablement {
	return []clusterv1alpha1.APIEnablement{{GroupVersion: groupVersion, Resources: []clusterv1alpha1.APIResource{{Name: resource}}}}
}

// completeAPIs returns the condition that reports whether a member's API list is complete.
func completeAPIs(status metav1.ConditionStatus) []metav1.Condition {
	return []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: status}}
}

// TestWriteNeedsTheAnswerOfEveryCluster checks that a write is not sent while another cluster may have
// the object.
func TestWriteNeedsTheAnswerOfEveryCluster(t *testing.T) {
	for name, addUnknownMember := range unknownMembers {
		t.Run("a cluster that "+name, func(t *testing.T) {
			var received []string
			f, _ := newFixture(t, recordRequests(&received, podServer("web")))
			f.deliver("m1", "v1", "Pod", "a", "web")
			addUnknownMember(t, f)
			f.proxy.SetLookupTimeout(testTimeout)
			front := f.front(t).URL + "/everywhere/api/v1/namespaces/a/pods/"
			for name, write := range writes {
				got := sendRequest(t, newRequest(t, write.method, front+"web"+write.path, ""))
				if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, "clusters/NAME/proxy") ||
					!strings.Contains(got.body, `pods "web" in namespace "a": it is unknown whether clusters [m2] have it: `) {
					t.Errorf("%s: got %v", name, got)
				}
			}
			got := sendRequest(t, newRequest(t, "GET", front+"none", ""))
			if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, "[m2]") {
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
			if warning := resp.Header.Get("Warning"); resp.StatusCode != http.StatusOK || !strings.Contains(warning, "m2") {
				t.Errorf("a read of an object in another cluster: got %s with warning %q", resp.Status, warning)
			}
		})
	}
}

// recordRequests returns a handler that records the requests that the proxy forwards.
func recordRequests(received *[]string, next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if !isLookup(req) {
			body, _ := io.ReadAll(req.Body)
			*received = append(*received, fmt.Sprintf("%s %s %s", req.Method, req.URL.Path, body))
		}
		next.ServeHTTP(w, req)
	}
}

// TestMissingObjects checks which error responses prove that the caller does not find an object.
func TestMissingObjects(t *testing.T) {
	status := func(code int, name string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","details":{"name":%q,"kind":"pods"}}`, name)
		}
	}
	complete := completeAPIs(metav1.ConditionTrue)
	for name, test := range map[string]struct {
		respond    http.HandlerFunc
		apis       []clusterv1alpha1.APIEnablement
		conditions []metav1.Condition
		code       int
	}{
		"about the object":                       {status(404, "web"), enable("pods"), complete, 404},
		"about the object, without known APIs":   {status(404, "web"), nil, nil, 404},
		"about another object":                   {status(404, "a"), enable("pods"), complete, 503},
		"that denies the request":                {status(403, "web"), enable("pods"), complete, 404},
		"that denies the request like a gateway": {failWith(403), enable("pods"), complete, 503},

		"without an object, of a served kind":                         {http.NotFound, enable("pods"), complete, 503},
		"without an object, of an unserved kind":                      {http.NotFound, enable("secrets"), complete, 404},
		"without an object, of an unserved kind of a listed version":  {http.NotFound, enable("secrets"), completeAPIs(metav1.ConditionFalse), 404},
		"without an object, of an unlisted version":                   {http.NotFound, enableIn("apps/v1", "deployments"), complete, 404},
		"without an object, of a version that an incomplete list has": {http.NotFound, enable("pods"), completeAPIs(metav1.ConditionFalse), 503},
		"without an object, of a version missing in an incomplete list": {
			http.NotFound, enableIn("apps/v1", "deployments"), completeAPIs(metav1.ConditionFalse), 503,
		},
		"without an object, of a version missing in a list that is not known to be complete": {
			http.NotFound, enableIn("apps/v1", "deployments"), nil, 503,
		},
		"without an object, before the first discovery": {http.NotFound, nil, nil, 503},
		"without an object, after a failed discovery":   {http.NotFound, nil, completeAPIs(metav1.ConditionFalse), 503},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixture(t, test.respond)
			f.cluster.Status.APIEnablements, f.cluster.Status.Conditions = test.apis, test.conditions
			url := f.front(t).URL + "/everywhere/api/v1/namespaces/a/pods/web"
			if got := sendRequest(t, newRequest(t, "GET", url, "")); got.code != test.code {
				t.Errorf("got %v, want %d", got, test.code)
			}
		})
	}
}

func failWith(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// TestHostileMemberReceivesNoWrite uses a malicious member m1 that claims to have every object, and an
// honest member m2 that has none.
func TestHostileMemberReceivesNoWrite(t *testing.T) {
	const podPath, configMapPath = "/api/v1/namespaces/a/pods/web", "/api/v1/namespaces/a/configmaps/web"
	object := func(apiVersion, kind, namespace, name string) string {
		return fmt.Sprintf(objectFormat, apiVersion, kind, namespace, name)
	}
	pod, deliveredPod := object("v1", "Pod", "a", "web"), []string{"m1", "v1"}
	tests := map[string]struct {
		path, claim string
		// delivered contains the cluster and the apiVersion for which the Pod "web" is delivered.
		delivered []string
		worksErr  error
		code      int
	}{
		"nothing of the kind":            {path: podPath, claim: "ok", delivered: deliveredPod, code: 503},
		"an empty object":                {path: podPath, claim: "{}", delivered: deliveredPod, code: 503},
		"an object of another name":      {path: podPath, claim: object("v1", "Pod", "a", "db"), delivered: deliveredPod, code: 503},
		"an object of another namespace": {path: podPath, claim: object("v1", "Pod", "b", "web"), delivered: deliveredPod, code: 503},
		"an object of another version":   {path: podPath, claim: object("v2", "Pod", "a", "web"), delivered: deliveredPod, code: 503},
		"a part of an object": {
			path: podPath, claim: object("meta.k8s.io/v1", "PartialObjectMetadata", "a", "web"), delivered: deliveredPod, code: 503,
		},
		"the object": {path: podPath, claim: pod, code: 405},
		"the object without UID": {
			path: podPath, claim: strings.Replace(pod, "0001", "", 1), delivered: deliveredPod, code: 405,
		},
		"the object that is delivered to another cluster": {path: podPath, claim: pod, delivered: []string{"m2", "v1"}, code: 405},
		"a delivered object of another kind":              {path: configMapPath, claim: pod, delivered: deliveredPod, code: 405},
		"a delivered object of another group":             {path: podPath, claim: pod, delivered: []string{"m1", "example.com/v1"}, code: 405},
		"the object whose Work cannot be read":            {path: podPath, claim: pod, worksErr: errors.New("etcd is down"), code: 503},
	}
	for name, test := range tests {
		t.Run("claims "+name, func(t *testing.T) {
			var received []string
			f, _ := newFixture(t, recordRequests(&received, respondWith(test.claim)))
			f.addMember(t, "m2", podServer())
			f.worksErr = test.worksErr
			if test.delivered != nil {
				f.deliver(test.delivered[0], test.delivered[1], "Pod", "a", "web")
			}
			front := f.front(t)
			for name, write := range writes {
				got := sendRequest(t, newRequest(t, write.method, front.URL+"/everywhere"+test.path+write.path, "secret"))
				if got.code != test.code || !strings.Contains(got.body, `"web" in namespace "a"`) {
					t.Errorf("%s: got %v, want %d", name, got, test.code)
				}
			}
			if len(received) > 0 {
				t.Errorf("the member received %q", received)
			}
		})
	}
}

// TestWriteOfClusterScopedObject writes objects without a namespace, and a Namespace, for which the
// request's namespace is the object's name.
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
		names := work.Names(schema.GroupKind{Kind: kind}, "", "web")
		delivered := f.works[work.ExecutionNamespace("m1")+"/"+names[0]]
		for _, workName := range names {
			f.works = map[string]*workv1alpha1.Work{work.ExecutionNamespace("m1") + "/" + workName: delivered}
			if got := sendRequest(t, newRequest(t, "DELETE", front.URL+"/everywhere"+path, "")); got != (clientResponse{200, "written"}) {
				t.Errorf("%s, delivered by Work %s: got %v", path, workName, got)
			}
		}
	}
}
