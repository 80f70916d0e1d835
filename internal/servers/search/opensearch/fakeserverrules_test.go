package opensearch_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// recorder records what would fail a test.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

const (
	validDocument = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","resourceVersion":"1","annotations":{"resource.karmada.io/cached-from-cluster":"east"}},"spec":"null","status":"{}"}`
	validAction   = `{"index":{"_id":"east_1","routing":"o_east_v1_Pod"}}`
	bulkPath      = "/kubernetes-pod/_bulk?filter_path=errors,items.*._id,items.*.status,items.*.error"
)

func TestServerIsStrict(t *testing.T) {
	tests := map[string]struct {
		method, path, contentType, body string
		// wantViolation is a part of the error. It is empty for a request that is correct.
		wantViolation string
		wantStatus    int
		wantBody      string
	}{
		"the info endpoint":            {method: "GET", path: "/", wantStatus: 200, wantBody: "cluster_uuid"},
		"an unknown path":              {method: "GET", path: "/_cat/indices", wantStatus: 400, wantViolation: "unknown request GET /_cat/indices"},
		"an unknown method":            {method: "POST", path: "/", wantStatus: 400, wantViolation: "unknown request POST /"},
		"an unknown parameter":         {method: "GET", path: "/x/_settings?pretty", wantStatus: 400, wantViolation: "unknown parameter pretty"},
		"a body that is not allowed":   {method: "POST", path: "/kubernetes-pod/_refresh", contentType: jsonType, body: "{}", wantStatus: 400, wantViolation: "has a body"},
		"an index that does not exist": {method: "GET", path: "/x/_settings?flat_settings=true", wantStatus: 404, wantBody: "index_not_found_exception"},
		"an index with another mapping": {
			method: "PUT", path: "/kubernetes-node", contentType: jsonType, body: `{"settings":{}}`, wantStatus: 400, wantViolation: "has the definition",
		},
		"an index that exists": {
			method: "PUT", path: "/kubernetes-pod", contentType: jsonType, body: wantedDefinition, wantStatus: 400, wantBody: "resource_already_exists_exception",
		},
		"an index with a wrong name": {
			method: "PUT", path: "/kubernetes-Pod", contentType: jsonType, body: wantedDefinition, wantStatus: 400, wantBody: "invalid_index_name_exception",
		},
		"a correct bulk request": {
			method: "POST", path: bulkPath, contentType: ndjsonType, body: validAction + "\n" + validDocument + "\n", wantStatus: 200, wantBody: `"status":201`,
		},
		"a deletion of a document that does not exist": {
			method: "POST", path: bulkPath, contentType: ndjsonType, body: `{"delete":{"_id":"x"}}` + "\n", wantStatus: 200, wantBody: `"status":404`,
		},
		"a bulk request as JSON": {
			method: "POST", path: bulkPath, contentType: jsonType, body: validAction + "\n" + validDocument + "\n", wantStatus: 400, wantViolation: "content type",
		},
		"a bulk request without its last newline": {
			method: "POST", path: bulkPath, contentType: ndjsonType, body: validAction + "\n" + validDocument, wantStatus: 400, wantBody: "must be terminated by a newline",
		},
		"an action without its document": {
			method: "POST", path: bulkPath, contentType: ndjsonType, body: validAction + "\n", wantStatus: 400, wantViolation: "ends after the action",
		},
		"an action without an ID": {
			method: "POST", path: bulkPath, contentType: ndjsonType, body: `{"index":{}}` + "\n" + validDocument + "\n", wantStatus: 400, wantViolation: "no ID",
		},
		"a document with a field too many": {
			method: "POST", path: bulkPath, contentType: ndjsonType, body: validAction + "\n" + strings.Replace(validDocument, "{", `{"data":{},`, 1) + "\n", wantStatus: 400, wantViolation: `unknown field "data"`,
		},
		"a spec that is no text": {
			method: "POST", path: bulkPath, contentType: ndjsonType, body: validAction + "\n" + strings.Replace(validDocument, `"null"`, `{}`, 1) + "\n", wantStatus: 400, wantViolation: "cannot unmarshal object",
		},
		"an ID of another cluster": {
			method: "POST", path: bulkPath, contentType: ndjsonType, body: strings.Replace(validAction, "east_1", "west_1", 1) + "\n" + validDocument + "\n", wantStatus: 400, wantViolation: "does not begin with the cluster",
		},
		"a routing value of another source": {
			method: "POST", path: bulkPath, contentType: ndjsonType, body: strings.Replace(validAction, "v1_Pod", "v1_Node", 1) + "\n" + validDocument + "\n", wantStatus: 400, wantViolation: "routing value",
		},
		"a search without a scan": {
			method: "POST", path: "/kubernetes-pod/_search", contentType: jsonType, body: `{"size":10,"query":{"term":{"_routing":"x"}}}`, wantStatus: 400, wantViolation: "is no scan",
		},
		"a query of another form": {
			method: "POST", path: "/kubernetes-pod/_search?scroll=1m", contentType: jsonType, body: `{"query":{"match_all":{}}}`, wantStatus: 400, wantViolation: "query",
		},
		"a scan that was ended": {
			method: "POST", path: "/_search/scroll", contentType: jsonType, body: `{"scroll":"1m","scroll_id":"x"}`, wantStatus: 404, wantBody: "search_context_missing_exception",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			server := newFakeServer(r)
			node := server.AddNode(nil)
			server.CreateIndex("kubernetes-pod", `{}`)
			status, body := send(t, node, test.method, test.path, test.contentType, test.body)
			if status != test.wantStatus || !strings.Contains(body, test.wantBody) {
				t.Errorf("status %d, body %s", status, body)
			}
			violations := strings.Join(r.errors, "\n")
			if (violations == "") != (test.wantViolation == "") || !strings.Contains(violations, test.wantViolation) {
				t.Errorf("violations %q, want %q", violations, test.wantViolation)
			}
		})
	}
}

func send(t *testing.T, node *fakeNode, method, path, contentType, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, node.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// TestDocumentsAreFoundAfterRefresh requires that a search shows the state of the last refresh.
func TestDocumentsAreFoundAfterRefresh(t *testing.T) {
	server := newFakeServer(t)
	node := server.AddNode(nil)
	server.CreateIndex("kubernetes-pod", `{}`)
	search := func() string {
		_, body := send(t, node, "POST", "/kubernetes-pod/_search?scroll=1m", jsonType,
			`{"size":10,"sort":["_doc"],"track_total_hits":true,"query":{"term":{"_routing":"o_east_v1_Pod"}},"_source":["metadata.resourceVersion"]}`)
		return body
	}
	steps := []struct {
		body string
		want bool
	}{
		{body: validAction + "\n" + validDocument + "\n", want: false},
		{want: true}, // a refresh
		{body: `{"delete":{"_id":"east_1","routing":"o_east_v1_Pod"}}` + "\n", want: true},
		{want: false},
	}
	for i, step := range steps {
		if step.body == "" {
			send(t, node, "POST", "/kubernetes-pod/_refresh", "", "")
		} else {
			send(t, node, "POST", bulkPath, ndjsonType, step.body)
		}
		if got := search(); strings.Contains(got, "east_1") != step.want {
			t.Errorf("step %d: %s", i, got)
		}
	}
}
