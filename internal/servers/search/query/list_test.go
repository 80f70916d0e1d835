package query

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

func containsText(text, part string) bool { return strings.Contains(text, part) }

func TestServeQuery(t *testing.T) {
	tests := map[string]struct {
		query       string
		permissions *fakePermissions
		want        []string
		warnings    []string
		reviews     []string
	}{
		"matches of all kinds, by cluster, namespace, name and kind": {
			query: "nginx", want: []string{
				"m1/blog/web/Deployment", "m1/blog/web/Pod", "m1/shop/web/Deployment", "m1/shop/web/Pod",
				"m2/blog/web/Deployment", "m2/blog/web/Pod", "m2/shop/web/Deployment", "m2/shop/web/Pod",
			},
			reviews: []string{"list m1/deployments/*", "list m1/nodes/*", "list m1/pods/*", "list m2/deployments/*", "list m2/pods/*"},
		},
		"only sources that can match are reviewed": {query: "kind:Node", want: []string{"m1//node-1/Node"}, reviews: []string{"list m1/nodes/*"}},
		"sources are reviewed although nothing matches": {
			query: "kind:Pod image:missing", reviews: []string{"list m1/pods/*", "list m2/pods/*"},
		},
		"a namespace whose review fails hides only its objects": {
			query: "kind:Pod image:nginx cluster=m1", permissions: &fakePermissions{denied: []string{"m1/pods/*"}, failing: []string{"m1/pods/shop"}}, want: []string{"m1/blog/web/Pod"},
			warnings: []string{`299 - "cluster \"m1\": only objects of namespaces are shown in which user \"alice\" may list pods"`},
		},
		"a kind that is not cached": {query: "kind:Secret", warnings: []string{
			`299 - "no cached kind of any cluster can match this query: check kind, group and cluster; ResourceRegistries select what is cached"`}},
		"a cluster that denies all": {
			query: "kind:Pod image:nginx", permissions: &fakePermissions{denied: []string{"m1"}}, want: []string{"m2/blog/web/Pod", "m2/shop/web/Pod"},
			warnings: []string{`299 - "cluster \"m1\": only objects of namespaces are shown in which user \"alice\" may list pods"`},
			reviews:  []string{"list m1/pods/*", "list m1/pods/blog", "list m1/pods/shop", "list m2/pods/*"},
		},
		"a cluster that denies objects without namespace": {
			query: "kind:Node", permissions: &fakePermissions{denied: []string{"m1"}},
			warnings: []string{`299 - "cluster \"m1\" is omitted: user \"alice\" may not read nodes there: ask for the permission in this cluster"`},
		},
		"a cluster that allows one namespace": {
			query: "kind:Pod image:nginx cluster=m1", permissions: &fakePermissions{denied: []string{"m1/pods/*", "m1/pods/shop"}}, want: []string{"m1/blog/web/Pod"},
			warnings: []string{`299 - "cluster \"m1\": only objects of namespaces are shown in which user \"alice\" may list pods"`},
		},
		"a cluster that does not respond": {
			query: "nginx ns=shop", permissions: &fakePermissions{hanging: []string{"m1"}}, want: []string{"m2/shop/web/Deployment", "m2/shop/web/Pod"},
			warnings: []string{`299 - "cluster \"m1\" is omitted: the cluster did not respond within 200ms to the review of user \"alice\"'s permissions"`},
			reviews:  []string{"list m1/deployments/*", "list m1/nodes/*", "list m1/pods/*", "list m2/deployments/*", "list m2/pods/*"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.permissions == nil {
				test.permissions = &fakePermissions{}
			}
			recorder := get(t, newHandler(newCache(t), test.permissions), "", "q", test.query)
			list := decodeList(t, recorder)
			if diff := cmp.Diff(test.want, describe(list.Items)); diff != "" {
				t.Error(diff)
			}
			if list.Kind != "SearchResultList" || list.APIVersion != "search.karmada.io/v1alpha1" || list.Continue != "" || list.Items == nil {
				t.Errorf("wrong list: %s", recorder.Body)
			}
			if diff := cmp.Diff(test.warnings, recorder.Header()["Warning"]); diff != "" {
				t.Error(diff)
			}
			if test.reviews != nil {
				if diff := cmp.Diff(test.reviews, test.permissions.sortedReviews()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestWarningsDoNotRevealObjects checks that a caller learns nothing about objects that the caller may
// not read: a query's warnings are the same whether or not an object matches.
func TestWarningsDoNotRevealObjects(t *testing.T) {
	tests := map[string]*fakePermissions{
		"a cluster denies all":                          {denied: []string{"m1"}},
		"a cluster denies a kind":                       {denied: []string{"m1/pods"}},
		"a cluster does not respond":                    {hanging: []string{"m1"}},
		"a cluster cannot be asked":                     {failing: []string{"m1"}},
		"a cluster cannot be asked about one kind":      {failing: []string{"m1/pods"}},
		"a cluster cannot be asked about one namespace": {denied: []string{"m1/pods/*"}, failing: []string{"m1/pods/shop", "m1/pods/blog"}},
	}
	for name, allowed := range tests {
		t.Run(name, func(t *testing.T) {
			handler := newHandler(newCache(t), allowed)
			warningsOf := func(query string) []string {
				recorder := get(t, handler, "", "q", query)
				if items := decodeList(t, recorder).Items; len(items) > 0 {
					t.Errorf("%s finds %v", query, describe(items))
				}
				watch := startWatch(t, handler, "q", query, "timeoutSeconds", "1")
				return append(recorder.Header()["Warning"], watch.response.Header["Warning"]...)
			}
			matching := warningsOf("kind:Pod cluster=m1 image:nginx:1.1*")
			if diff := cmp.Diff(matching, warningsOf("kind:Pod cluster=m1 image:nginx:1.2*")); diff != "" || len(matching) != 2 {
				t.Errorf("warnings %q, and without a match: %s", matching, diff)
			}
		})
	}
}

// TestEmptySourcesAreReviewed checks that warnings do not reveal whether a cluster has objects of a kind.
func TestEmptySourcesAreReviewed(t *testing.T) {
	cache := newCache(t)
	cache.List("m3", objectcachetest.Pods, "1")
	handler := newHandler(cache, &fakePermissions{denied: []string{"m3"}})
	const parameters = "kind:Pod cluster=m3"
	want := []string{`299 - "cluster \"m3\": only objects of namespaces are shown in which user \"alice\" may list pods"`}
	if diff := cmp.Diff(want, get(t, handler, "", "q", parameters).Header()["Warning"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, startWatch(t, handler, "q", parameters, "timeoutSeconds", "1").response.Header["Warning"]); diff != "" {
		t.Error(diff)
	}
}

func TestAClusterThatDoesNotRespondDelaysOneReview(t *testing.T) {
	synctest.Test(t, testHangingCluster)
}

func testHangingCluster(t *testing.T) {
	var kinds []objectcachetest.Kind
	for i := range 3 * maxReviews {
		kind := objectcachetest.Pods
		kind.Kind, kind.Resource = fmt.Sprintf("Kind%d", i), fmt.Sprintf("kinds%d", i)
		kinds = append(kinds, kind)
	}
	cache := objectcachetest.New(t, kinds...)
	for _, kind := range kinds {
		for _, cluster := range []string{"m1", "m2"} {
			cache.Put(cluster, newObject(kind, "shop", "web", nil, "nginx"))
		}
	}
	handler := newHandler(cache, &fakePermissions{hanging: []string{"m1"}})
	handler.reviewTimeout = 20 * time.Second
	began := time.Now()
	recorder := get(t, handler, "", "q", "nginx")
	if took := time.Since(began); took >= 2*handler.reviewTimeout {
		t.Errorf("the response takes %s", took)
	}
	if items := decodeList(t, recorder).Items; len(items) != len(kinds) || len(recorder.Header()["Warning"]) != 1 {
		t.Errorf("%d objects, want those of m2; warnings %q", len(items), recorder.Header()["Warning"])
	}
}

func TestResultHasItsFields(t *testing.T) {
	cache := newCache(t)
	cache.SetState("m1", objectcachetest.Nodes, objectcache.Stale, "not ready")
	_, since, _ := cache.KindOf(objectcachetest.Nodes.GroupVersionKind).Snapshot().Cluster("m1").State()
	recorder := get(t, newHandler(cache, &fakePermissions{}), "", "q", "kind:Node age>1h")
	var response map[string]any
	if err := json.Unmarshal(recorder.Body.Bytes(), &response); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"kind": "SearchResultList", "apiVersion": "search.karmada.io/v1alpha1", "metadata": map[string]any{},
		"items": []any{map[string]any{
			"kind": "Node", "apiVersion": "v1", "cluster": "m1", "name": "node-1", "uid": "m1-Node--node-1",
			"creationTimestamp": "2026-11-25T10:00:00Z", "staleSince": since.UTC().Format("2006-01-02T15:04:05Z"),
			"matches": []any{map[string]any{"field": "kind", "value": "Node"}, map[string]any{"field": "age", "value": "2h0m0s"}},
		}},
	}
	if diff := cmp.Diff(want, response); diff != "" {
		t.Error(diff)
	}
	if warnings := recorder.Header()["Warning"]; len(warnings) != 1 || !containsText(warnings[0], "not ready") {
		t.Errorf("warnings %q", warnings)
	}
}

func TestPagesGiveAllMatchesOnce(t *testing.T) {
	cache := newCache(t)
	for i := range 700 {
		cache.Put("m3", newObject(objectcachetest.Pods, fmt.Sprintf("ns-%d", i%5), fmt.Sprintf("pod-%d", i), nil, "nginx:1"))
	}
	// The user may not read one of the namespaces, so reading a page must continue after whole chunks
	// without results.
	handler := newHandler(cache, &fakePermissions{denied: []string{"m3/pods/*", "m3/pods/ns-2", "m1/deployments"}})
	all := describe(decodeList(t, get(t, handler, "", "q", "nginx", "limit", "5000")).Items)
	if len(all) != 6+560 {
		t.Fatalf("%d matches, want 566", len(all))
	}
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.SampledFrom([]int{1, 2, 100, 255, 256, 257, 560, 565, 566, 567}).Draw(rt, "limit")
		var paged []string
		for token, pages := "", 0; pages == 0 || token != ""; pages++ {
			list := decodeList(t, get(t, handler, "", "q", "nginx", "limit", fmt.Sprint(limit), "continue", token))
			if len(list.Items) > limit || len(list.Items) == 0 || list.Continue != "" && len(list.Items) != limit {
				rt.Fatalf("a page of %d has %d items", limit, len(list.Items))
			}
			paged, token = append(paged, describe(list.Items)...), list.Continue
			if limit < 100 && pages == 20 {
				break
			}
		}
		if diff := cmp.Diff(all[:len(paged)], paged); diff != "" || limit >= 100 && len(paged) != len(all) {
			rt.Errorf("pages of %d: %s", limit, diff)
		}
	})
}

func TestQueryErrors(t *testing.T) {
	handler := newHandler(newCache(t), &fakePermissions{})
	token := decodeList(t, get(t, handler, "", "q", "nginx", "limit", "1")).Continue
	tests := map[string]struct {
		parameters []string
		want       string
	}{
		"no query":                      {nil, `query, column 1: the query is empty`},
		"a syntax error":                {[]string{"q", "kind:Pod imge:nginx"}, `query, column 10: unknown field "imge": did you mean image?`},
		"a limit that is no number":     {[]string{"q", "a", "limit", "x"}, `the parameter limit="x" is invalid: use a number from 1 to 5000`},
		"a negative limit":              {[]string{"q", "a", "limit", "-1"}, `limit="-1" is invalid`},
		"a watch that is no boolean":    {[]string{"q", "a", "watch", "maybe"}, `watch="maybe" is invalid: use true or false`},
		"a timeout that is no number":   {[]string{"q", "a", "timeoutSeconds", "1m"}, `timeoutSeconds="1m" is invalid`},
		"a token that is not decodable": {[]string{"q", "nginx", "continue", "???"}, `continue="???" is invalid: use metadata.continue of the last page`},
		"a token that is no position":   {[]string{"q", "nginx", "continue", "e30"}, `continue="e30" is invalid`},
		"a token of another query":      {[]string{"q", "web", "continue", token}, `belongs to another query: repeat the query of the last page`},
		"a token for a watch":           {[]string{"q", "nginx", "watch", "true", "continue", token}, `a watch has no pages`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := get(t, handler, "", test.parameters...)
			status := &metav1.Status{}
			if err := json.Unmarshal(recorder.Body.Bytes(), status); err != nil {
				t.Fatal(err)
			}
			if recorder.Code != http.StatusBadRequest || status.Code != 400 || status.Kind != "Status" || status.Reason != metav1.StatusReasonBadRequest || !containsText(status.Message, test.want) {
				t.Errorf("status %d: %s", recorder.Code, recorder.Body)
			}
		})
	}
}

func TestQueryAsTable(t *testing.T) {
	handler := newHandler(newCache(t), &fakePermissions{})
	recorder := get(t, handler, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "q", "kind:Pod image:nginx", "limit", "1")
	table := &metav1.Table{}
	if err := json.Unmarshal(recorder.Body.Bytes(), table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if diff := cmp.Diff([]string{"Cluster", "Kind", "Namespace", "Name", "Age", "Matched"}, columns); diff != "" {
		t.Error(diff)
	}
	if len(table.Rows) != 1 || table.Kind != "Table" || table.Continue == "" {
		t.Fatalf("wrong table: %s", recorder.Body)
	}
	if diff := cmp.Diff([]any{"m1", "Pod", "blog", "web", "120m", "kind=Pod, image=nginx:1.19"}, table.Rows[0].Cells); diff != "" {
		t.Error(diff)
	}
	if !containsText(string(table.Rows[0].Object.Raw), `"name":"web"`) {
		t.Errorf("the row has the object %s", table.Rows[0].Object.Raw)
	}
}

func TestAcceptsTable(t *testing.T) {
	tests := map[string]struct {
		accept string
		want   bool
	}{
		"kubectl":                  {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", true},
		"JSON":                     {"application/json", false},
		"JSON before a Table":      {"application/json, application/json;as=Table;v=v1;g=meta.k8s.io", false},
		"another version":          {"application/json;as=Table;v=v2;g=meta.k8s.io", false},
		"a Table in another form":  {"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json", false},
		"a header that is invalid": {";;;", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := acceptsTable([]string{test.accept}); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestManyWarningsAreSummarized(t *testing.T) {
	cache := newCache(t)
	for i := range 30 {
		cache.AddCluster(fmt.Sprintf("waiting-%02d", i), objectcachetest.Pods)
	}
	warnings := get(t, newHandler(cache, &fakePermissions{}), "", "q", "kind:Pod").Header()["Warning"]
	if len(warnings) != 11 || !containsText(warnings[10], "20 more warnings are omitted") {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add("e30")
	f.Add("eyJxIjoiIn0")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseParameters(map[string][]string{"q": {"nginx"}, "continue": {text}})
		if err == nil && text != "" && p.after.Cluster == "" {
			t.Errorf("%q is no position, but is accepted", text)
		}
	})
}
