package proxying_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"

	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
	"karmada.io/karmada/internal/servers/search/proxying"
)

// fixture is a proxy whose members respond from memory.
type fixture struct {
	*objectcachetest.Cache
	t testing.TB
	// members are the live members, by name.
	members map[string]*fakeMember
	// denied contains texts of the form "user verb resource cluster" for denied permissions. broken
	// contains clusters for which permissions are unknown.
	denied, broken map[string]bool
	handler        *proxying.Handler
	forwarded      []string
	// respond writes a member's response to a forwarded request.
	respond func(w http.ResponseWriter, req *http.Request)
	mu      sync.Mutex
}

// fakeMember is a member that has objects of one kind.
type fakeMember struct {
	objects []*unstructured.Unstructured
	version int
	// err is the error for each request. code is the status code of each response.
	err  error
	code int
	// hangs means that requests wait until their context ends.
	hangs bool
	// failAfter is the number of pages after which requests fail. 0 means never.
	failAfter, pages int
	// raw replaces the response to a list.
	raw string
	// queries contains the queries of all requests.
	queries []string
	// idle is the idle timeout of the last request.
	idle time.Duration
	mu   sync.Mutex
}

func newFixture(t testing.TB, clusters ...string) *fixture {
	t.Helper()
	f := &fixture{
		Cache: objectcachetest.New(t, objectcachetest.Pods, objectcachetest.ConfigMaps, objectcachetest.Nodes), t: t,
		members: map[string]*fakeMember{}, denied: map[string]bool{}, broken: map[string]bool{},
	}
	for _, cluster := range clusters {
		f.members[cluster] = &fakeMember{version: 100}
	}
	f.configure(proxying.Limits{})
	return f
}

func (f *fixture) configure(limits proxying.Limits) {
	f.handler = proxying.New(proxying.Options{Cache: f.Cache.Cache, Reads: f, Forwards: forwards{f}, Permissions: f}, limits)
}

// put stores objects in the member and in the cache.
func (f *fixture) put(cluster string, objects ...*unstructured.Unstructured) {
	f.t.Helper()
	member := f.members[cluster]
	for _, object := range objects {
		member.version++
		object.SetResourceVersion(strconv.Itoa(member.version))
		member.objects = append(member.objects, object)
		f.Put(cluster, object)
	}
	slices.SortFunc(member.objects, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
}

func pod(namespace, name string, labels ...string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"nodeName": "node-of-" + name}, "status": map[string]any{"phase": "Running"},
	}}
	if len(labels) == 2 {
		object.SetLabels(map[string]string{labels[0]: labels[1]})
	}
	return object
}

// Allowed implements proxying.Permissions.
func (f *fixture) Allowed(_ context.Context, caller user.Info, cluster, verb string, resource schema.GroupVersionResource, _, _ string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken[cluster] {
		return false, errors.New("no answer")
	}
	return !f.denied[strings.Join([]string{caller.GetName(), verb, resource.Resource, cluster}, " ")], nil
}

// forwards records the requests that the proxy forwards.
type forwards struct{ *fixture }

// Handler implements proxying.Forwarder.
func (f forwards) Handler(_ context.Context, cluster string, caller user.Info, path string, _ rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		f.forwarded = append(f.forwarded, fmt.Sprintf("%s %s %s %s %s", caller.GetName(), cluster, req.Method, path, body))
		if f.respond != nil {
			f.respond(w, req)
		}
	}), nil
}

// Do implements proxying.Reader.
func (f forwards) Do(ctx context.Context, cluster string, caller user.Info, request memberproxy.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	handler, err := f.Handler(ctx, cluster, caller, request.Path, nil)
	if err != nil {
		return nil, err
	}
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, request.Method, "/", bytes.NewReader(request.Body)))
	return recorder.Result(), nil
}

// ForwardToKarmada implements proxying.Forwarder.
func (f forwards) ForwardToKarmada(_ http.ResponseWriter, req *http.Request, path string, caller user.Info, _ rest.Responder) {
	f.forwarded = append(f.forwarded, fmt.Sprintf("%s karmada %s %s", caller.GetName(), req.Method, path))
}

// Do implements proxying.Reader.
func (f *fixture) Do(ctx context.Context, cluster string, _ user.Info, request memberproxy.Request) (*http.Response, error) {
	member := f.members[cluster]
	if member.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	member.mu.Lock()
	defer member.mu.Unlock()
	member.queries = append(member.queries, request.Query.Encode())
	member.pages++
	member.idle = request.Idle
	switch {
	case member.err != nil:
		return nil, member.err
	case member.failAfter > 0 && member.pages > member.failAfter:
		return nil, errors.New("connection reset")
	case member.code != 0:
		return newResponse(member.code, metav1.Status{Message: "of the member", Reason: reasons[member.code], Code: int32(member.code)}), nil
	case member.raw != "":
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(member.raw))}, nil
	}
	return member.answer(request), nil
}

// reasons maps status codes to the reasons in members' errors.
var reasons = map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusGone: metav1.StatusReasonExpired}

func newResponse(code int, body any) *http.Response {
	if status, ok := body.(metav1.Status); ok {
		status.Kind = "Status"
		body = status
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(encoded)))}
}

// answer responds to a get or list request as an API server does.
func (m *fakeMember) answer(request memberproxy.Request) *http.Response {
	parts := strings.Split(strings.Trim(request.Path, "/"), "/")
	namespace, name := "", ""
	if len(parts) > 3 && parts[2] == "namespaces" {
		namespace = parts[3]
		parts = append(parts[:2:2], parts[4:]...)
	}
	if len(parts) > 3 {
		name = parts[3]
	}
	selector, err := labels.Parse(request.Query.Get("labelSelector"))
	if err != nil {
		return newResponse(http.StatusBadRequest, metav1.Status{Message: err.Error(), Reason: metav1.StatusReasonBadRequest})
	}
	var selected []any
	for _, object := range m.objects {
		if (namespace == "" || object.GetNamespace() == namespace) && (name == "" || object.GetName() == name) && selector.Matches(labels.Set(object.GetLabels())) {
			selected = append(selected, object.Object)
		}
	}
	if name != "" {
		if len(selected) == 0 {
			return newResponse(http.StatusNotFound, metav1.Status{
				Message: "not found", Reason: metav1.StatusReasonNotFound, Code: 404, Details: &metav1.StatusDetails{Name: name},
			})
		}
		return newResponse(http.StatusOK, selected[0])
	}
	return m.page(request, selected)
}

// page returns one page. The continue token is the index of the page's first object.
func (m *fakeMember) page(request memberproxy.Request, selected []any) *http.Response {
	from, _ := strconv.Atoi(request.Query.Get("continue"))
	limit, _ := strconv.Atoi(request.Query.Get("limit"))
	metadata := map[string]any{"resourceVersion": strconv.Itoa(m.version)}
	end := len(selected)
	if limit > 0 && from+limit < end {
		end = from + limit
		metadata["continue"] = strconv.Itoa(end)
	}
	items := append([]any{}, selected[from:end]...)
	if !strings.Contains(request.Header.Get("Accept"), "as=Table") {
		return newResponse(http.StatusOK, map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})
	}
	for i, item := range items {
		object := item.(map[string]any)
		items[i] = map[string]any{"cells": []any{object["metadata"].(map[string]any)["name"]}, "object": map[string]any{"metadata": object["metadata"]}}
	}
	return newResponse(http.StatusOK, map[string]any{
		"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": []any{map[string]any{"name": "Name"}}, "rows": items,
	})
}

// response is the response of the proxy.
type response struct {
	*httptest.ResponseRecorder
	err error
}

// send sends a request as alice. request is a method and a path, or only a path for GET.
func (f *fixture) send(request string, change ...func(*http.Request)) *response {
	f.t.Helper()
	method, path, ok := strings.Cut(request, " ")
	if !ok {
		method, path = http.MethodGet, request
	}
	req := httptest.NewRequestWithContext(f.t.Context(), method, path, nil)
	for _, c := range change {
		c(req)
	}
	r := &response{ResponseRecorder: httptest.NewRecorder()}
	name := "karmada"
	if req.Header.Get("Name") != "" {
		name = req.Header.Get("Name")
	}
	f.handler.Serve(r, req, name, req.URL.Path, &user.DefaultInfo{Name: "alice"}, errorSink{&r.err})
	return r
}

func accept(value string) func(*http.Request) {
	return func(req *http.Request) { req.Header.Set("Accept", value) }
}

func strict(req *http.Request) { req.Header.Set("Name", searchv1alpha1.ProxyingStrict) }

func body(contentType, text string) func(*http.Request) {
	return func(req *http.Request) {
		req.Header.Set("Content-Type", contentType)
		req.Body = io.NopCloser(strings.NewReader(text))
	}
}

// errorSink stores the error of a request.
type errorSink struct{ err *error }

func (e errorSink) Object(int, runtime.Object) {}
func (e errorSink) Error(err error)            { *e.err = err }

// list decodes the response as a list.
func (r *response) list(t testing.TB) *unstructured.UnstructuredList {
	t.Helper()
	if r.err != nil {
		t.Fatalf("error %v", r.err)
	}
	list := &unstructured.UnstructuredList{}
	if err := json.Unmarshal(r.Body.Bytes(), list); err != nil {
		t.Fatalf("decoding %s: %v", r.Body, err)
	}
	return list
}

// names returns the cluster, namespace and name of each object in the list.
func names(list *unstructured.UnstructuredList) []string {
	all := []string{}
	for i := range list.Items {
		item := &list.Items[i]
		all = append(all, item.GetAnnotations()["resource.karmada.io/cached-from-cluster"]+":"+item.GetNamespace()+"/"+item.GetName())
	}
	return all
}
