package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/servers/search/index"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

var (
	now   = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	alice = &user.DefaultInfo{Name: "alice"}
)

// fakePermissions are the permissions in members. Everything is permitted unless a rule denies it.
type fakePermissions struct {
	mu sync.Mutex
	// denied contains rules of the forms "cluster", "cluster/resource" and
	// "cluster/resource/namespace". The namespace "*" means the review for all namespaces.
	denied []string
	// hanging are clusters that do not respond.
	hanging []string
	// failing contains the reviews that fail, in the same form as denied.
	failing []string
	reviews []string
}

func (r *fakePermissions) Allowed(ctx context.Context, caller user.Info, cluster, verb string, resource schema.GroupVersionResource, namespace, name string) (bool, error) {
	if caller.GetName() != alice.Name {
		return false, fmt.Errorf("unexpected caller %s", caller.GetName())
	}
	if namespace == "" {
		namespace = "*"
	}
	r.mu.Lock()
	r.reviews = append(r.reviews, strings.TrimSuffix(fmt.Sprintf("%s %s/%s/%s/%s", verb, cluster, resource.Resource, namespace, name), "/"))
	isIn := func(rules []string) bool {
		return slices.Contains(rules, cluster) || slices.Contains(rules, cluster+"/"+resource.Resource) ||
			slices.Contains(rules, cluster+"/"+resource.Resource+"/"+namespace)
	}
	denied, hangs, fails := isIn(r.denied), slices.Contains(r.hanging, cluster), isIn(r.failing)
	r.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return false, ctx.Err()
	}
	if fails {
		return false, errors.New("connection refused")
	}
	return !denied, nil
}

// fail sets the reviews that fail.
func (r *fakePermissions) fail(failing ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = failing
}

func (r *fakePermissions) sortedReviews() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.reviews))
}

func newObject(kind objectcachetest.Kind, namespace, name string, labels map[string]any, image string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"labels": labels, "creationTimestamp": "2026-11-25T10:00:00Z"},
		"spec":     map[string]any{"containers": []any{map[string]any{"image": image}}},
	}}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// newCache returns a cache with Pods and Deployments in the clusters m1 and m2, and Nodes in m1.
func newCache(t testing.TB) *objectcachetest.Cache {
	cache := objectcachetest.New(t, objectcachetest.Pods, objectcachetest.Deployments, objectcachetest.Nodes, objectcachetest.Namespaces)
	for _, cluster := range []string{"m2", "m1"} {
		for _, namespace := range []string{"shop", "blog"} {
			cache.Put(cluster,
				newObject(objectcachetest.Pods, namespace, "web", map[string]any{"app": "web"}, "nginx:1.19"),
				newObject(objectcachetest.Pods, namespace, "api", map[string]any{"app": "api"}, "api:2"),
				newObject(objectcachetest.Deployments, namespace, "web", map[string]any{"app": "web"}, "nginx:1.20"),
			)
		}
	}
	cache.Put("m1", newObject(objectcachetest.Nodes, "", "node-1", nil, ""))
	return cache
}

func newHandler(cache *objectcachetest.Cache, allowed Permissions) *Handler {
	return New(Options{
		Cache: cache.Cache, Searcher: index.NewMemory(cache.Cache), Permissions: allowed,
		Now: func() time.Time { return now }, ReviewTimeout: 200 * time.Millisecond,
	})
}

// get sends a query with the given parameters and returns the response.
func get(t testing.TB, h *Handler, accept string, parameters ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/query?"+encode(parameters...), nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	recorder := httptest.NewRecorder()
	h.ServeQuery(recorder, req, alice)
	return recorder
}

func encode(parameters ...string) string {
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	return values.Encode()
}

func decodeList(t testing.TB, recorder *httptest.ResponseRecorder) *searchv1alpha1.SearchResultList {
	t.Helper()
	list := &searchv1alpha1.SearchResultList{}
	if recorder.Code != http.StatusOK {
		t.Fatalf("status %d: %s", recorder.Code, recorder.Body)
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), list); err != nil {
		t.Fatal(err)
	}
	return list
}

func describe(items []searchv1alpha1.SearchResult) []string {
	var names []string
	for _, item := range items {
		names = append(names, describeItem(item))
	}
	return names
}

func describeItem(item searchv1alpha1.SearchResult) string {
	return fmt.Sprintf("%s/%s/%s/%s", item.Cluster, item.Namespace, item.Name, item.Kind)
}
