package query

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

func serveCache(t *testing.T, h *Handler, path, query string) *httptest.ResponseRecorder {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	h.ServeCache(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), path, values, alice)
	return recorder
}

func TestServeCache(t *testing.T) {
	tests := map[string]struct {
		path, query string
		permissions *fakePermissions
		want        []string
		wantKind    string
		warnings    []string
		reviews     []string
	}{
		"all objects, by cluster, namespace and name": {path: "/api/v1/pods", wantKind: "PodList", want: []string{
			"m1/blog/api", "m1/blog/web", "m1/shop/api", "m1/shop/web", "m2/blog/api", "m2/blog/web", "m2/shop/api", "m2/shop/web",
		}, reviews: []string{"list m1/pods/*", "list m2/pods/*"}},
		"the path needs no leading slash": {path: "api/v1/nodes/", want: []string{"m1//node-1"}, wantKind: "NodeList"},
		"objects of a namespace": {
			path: "apis/apps/v1/namespaces/shop/deployments", wantKind: "DeploymentList", want: []string{"m1/shop/web", "m2/shop/web"},
			reviews: []string{"list m1/deployments/shop", "list m2/deployments/shop"},
		},
		"one name in all clusters": {
			path: "api/v1/namespaces/shop/pods/web", want: []string{"m1/shop/web", "m2/shop/web"}, wantKind: "PodList",
			reviews: []string{"get m1/pods/shop/web", "get m2/pods/shop/web"},
		},
		"a name that no cluster has": {
			path: "api/v1/namespaces/shop/pods/x", wantKind: "PodList", permissions: &fakePermissions{denied: []string{"m1"}},
			warnings: []string{`299 - "cluster \"m1\" is omitted: user \"alice\" may not read pods there: request one namespace, or ask for the permission in this cluster"`},
			reviews:  []string{"get m1/pods/shop/x", "get m2/pods/shop/x"},
		},
		"a hidden name has the warning of a name that no cluster has": {
			path: "api/v1/namespaces/shop/pods/web", wantKind: "PodList", permissions: &fakePermissions{denied: []string{"m1"}}, want: []string{"m2/shop/web"},
			warnings: []string{`299 - "cluster \"m1\" is omitted: user \"alice\" may not read pods there: request one namespace, or ask for the permission in this cluster"`},
			reviews:  []string{"get m1/pods/shop/web", "get m2/pods/shop/web"},
		},
		"a name without its namespace":              {path: "api/v1/pods/web", wantKind: "PodList"},
		"a label selector":                          {path: "api/v1/namespaces/shop/pods", query: "labelSelector=app%3Dapi", want: []string{"m1/shop/api", "m2/shop/api"}, wantKind: "PodList"},
		"a label selector does not apply to a name": {path: "api/v1/namespaces/shop/pods/web", query: "labelSelector=app%3Dapi", want: []string{"m1/shop/web", "m2/shop/web"}, wantKind: "PodList"},
		"other list options are ignored":            {path: "api/v1/namespaces/shop/pods", query: "limit=1&continue=x&resourceVersion=5&fieldSelector=metadata.name%3Dapi", want: []string{"m1/shop/api", "m1/shop/web", "m2/shop/api", "m2/shop/web"}, wantKind: "PodList"},
		"namespaces are cluster scoped":             {path: "api/v1/namespaces/shop", wantKind: "NamespaceList"},
		"a cluster that denies the list": {
			path: "apis/apps/v1/deployments", permissions: &fakePermissions{denied: []string{"m1/deployments"}}, want: []string{"m2/blog/web", "m2/shop/web"}, wantKind: "DeploymentList",
			warnings: []string{`299 - "cluster \"m1\" is omitted: user \"alice\" may not read deployments.apps there: request one namespace, or ask for the permission in this cluster"`},
		},
		"a cluster whose review fails": {
			path: "apis/apps/v1/deployments", permissions: &fakePermissions{failing: []string{"m2"}}, want: []string{"m1/blog/web", "m1/shop/web"}, wantKind: "DeploymentList",
			warnings: []string{`299 - "cluster \"m2\" is omitted: connection refused"`},
		},
		"a cluster that does not respond": {
			path: "apis/apps/v1/deployments", permissions: &fakePermissions{hanging: []string{"m1"}}, want: []string{"m2/blog/web", "m2/shop/web"}, wantKind: "DeploymentList",
			warnings: []string{`299 - "cluster \"m1\" is omitted: the cluster did not respond within 200ms to the review of user \"alice\"'s permissions"`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.permissions == nil {
				test.permissions = &fakePermissions{}
			}
			recorder := serveCache(t, newHandler(newCache(t), test.permissions), test.path, test.query)
			if recorder.Code != http.StatusOK || recorder.Header().Get("Content-Type") != "application/json; charset=utf-8" {
				t.Fatalf("status %d, header %v: %s", recorder.Code, recorder.Header(), recorder.Body)
			}
			list := &unstructured.UnstructuredList{}
			if err := list.UnmarshalJSON(recorder.Body.Bytes()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range list.Items {
				got = append(got, item.GetAnnotations()["resource.karmada.io/cached-from-cluster"]+"/"+item.GetNamespace()+"/"+item.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if list.GetKind() != test.wantKind {
				t.Errorf("kind %s, want %s", list.GetKind(), test.wantKind)
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

// TestANamespaceIsReviewedInItself checks that, as in Kubernetes, a Role in a namespace can permit
// reading its Namespace.
func TestANamespaceIsReviewedInItself(t *testing.T) {
	tests := map[string]struct {
		path    string
		reviews []string
		count   int
	}{
		"one Namespace":  {"api/v1/namespaces/shop", []string{"get m1/namespaces/shop/shop"}, 1},
		"all Namespaces": {"api/v1/namespaces", []string{"list m1/namespaces/*"}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cache := newCache(t)
			cache.Put("m1", newObject(objectcachetest.Namespaces, "", "shop", nil, ""))
			allowed := &fakePermissions{denied: []string{"m1/namespaces/*"}}
			list := &unstructured.UnstructuredList{}
			if err := list.UnmarshalJSON(serveCache(t, newHandler(cache, allowed), test.path, "").Body.Bytes()); err != nil || len(list.Items) != test.count {
				t.Errorf("%d objects, error %v, want %d", len(list.Items), err, test.count)
			}
			if diff := cmp.Diff(test.reviews, allowed.sortedReviews()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestServeCacheHasTheFormThatClientsExpect(t *testing.T) {
	recorder := serveCache(t, newHandler(newCache(t), &fakePermissions{}), "api/v1/namespaces", "")
	var response map[string]any
	if err := json.Unmarshal(recorder.Body.Bytes(), &response); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"kind": "NamespaceList", "apiVersion": "v1", "metadata": map[string]any{}, "items": []any{}}
	if diff := cmp.Diff(want, response); diff != "" {
		t.Error(diff)
	}
}

// Clients expect a list even if no ResourceRegistry selects the kind.
func TestServeCacheOfUnselectedKindIsEmpty(t *testing.T) {
	recorder := serveCache(t, newHandler(newCache(t), &fakePermissions{}), "apis/example.com/v1/things", "")
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(recorder.Body.Bytes()); err != nil || len(list.Items) != 0 || recorder.Code != http.StatusOK {
		t.Errorf("status %d, error %v: %s", recorder.Code, err, recorder.Body)
	}
	const want = "no ResourceRegistry selects example.com/v1, Resource=things: add its kind to a registry, or correct the path"
	if warnings := recorder.Header()["Warning"]; len(warnings) != 1 || !containsText(warnings[0], want) {
		t.Errorf("warnings %q", warnings)
	}
}

func TestServeCacheErrors(t *testing.T) {
	tests := map[string]struct {
		path, query string
		wantCode    int
		wantBody    string
	}{
		"a subresource":                {"api/v1/namespaces/shop/pods/web/log", "", 400, `invalid request parts`},
		"a subresource of a namespace": {"api/v1/namespaces/shop/status", "", 400, `invalid request parts`},
		"no resource":                  {"apis/apps/v1", "", 400, `invalid request parts`},
		"no API path":                  {"healthz", "", 400, `invalid request parts`},
		"an empty path":                {"/", "", 400, `invalid request parts`},
		"an empty part":                {"api/v1//pods", "", 400, `invalid request parts`},
		"a malformed label selector":   {"api/v1/pods", "labelSelector=a%3D%3D%3Db", 400, `{"error":`},
		"a malformed limit":            {"api/v1/pods", "limit=x", 400, `{"error":`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := serveCache(t, newHandler(newCache(t), &fakePermissions{}), test.path, test.query)
			if recorder.Code != test.wantCode || !containsText(recorder.Body.String(), test.wantBody) {
				t.Errorf("status %d: %s", recorder.Code, recorder.Body)
			}
		})
	}
}

func TestServeCacheWarnsOfClustersThatAreNotUpToDate(t *testing.T) {
	cache := newCache(t)
	cache.SetState("m1", objectcachetest.Nodes, objectcache.Stale, "the cluster is not ready")
	cache.AddCluster("m3", objectcachetest.Nodes)
	recorder := serveCache(t, newHandler(cache, &fakePermissions{}), "api/v1/nodes", "")
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(recorder.Body.Bytes()); err != nil || len(list.Items) != 1 {
		t.Errorf("%d objects, error %v, want the stale object", len(list.Items), err)
	}
	warnings := recorder.Header()["Warning"]
	if len(warnings) != 2 || !containsText(warnings[0], `cluster \"m1\": its nodes are as of `) || !containsText(warnings[0], "the cluster is not ready") ||
		!containsText(warnings[1], `cluster \"m3\" is omitted: its nodes are not cached yet`) {
		t.Errorf("warnings %q", warnings)
	}
}
