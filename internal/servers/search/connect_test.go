package search

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// recorder records the requests that it serves.
type recorder struct{ served []string }

func (r *recorder) ServeCache(_ http.ResponseWriter, _ *http.Request, path string, query url.Values, caller user.Info) {
	r.served = append(r.served, fmt.Sprintf("cache %s?%s by %s", path, query.Encode(), caller.GetName()))
}

func (r *recorder) ServeQuery(_ http.ResponseWriter, req *http.Request, caller user.Info) {
	r.served = append(r.served, fmt.Sprintf("query %s by %s", req.URL.RawQuery, caller.GetName()))
}

func (r *recorder) Serve(_ http.ResponseWriter, req *http.Request, name, path string, caller user.Info, _ rest.Responder) {
	r.served = append(r.served, fmt.Sprintf("%s %s at %s by %s", req.Method, path, name, caller.GetName()))
}

const apiPath = "/apis/search.karmada.io/v1alpha1/"

// newRequest returns a request of alice as the API server library passes it on.
func newRequest(t *testing.T, method, path string) (*http.Request, *request.RequestInfo) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, apiPath+path, nil)
	factory := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(req)
	if err != nil {
		t.Fatal(err)
	}
	ctx := request.WithUser(request.WithRequestInfo(req.Context(), info), &user.DefaultInfo{Name: "alice"})
	return req.WithContext(ctx), info
}

func TestConnect(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method, path string
		want         string
		// wantError is a part of the message of a NotFound error.
		wantError string
	}{
		"the cache has a native path":           {path: "search/cache/apis/apps/v1/deployments?labelSelector=a%3Db", want: "cache /apis/apps/v1/deployments?labelSelector=a%3Db by alice"},
		"the cache without a path":              {path: "search/cache", want: "cache ? by alice"},
		"a trailing slash stays":                {path: "search/cache/api/v1/", want: "cache /api/v1/? by alice"},
		"a query":                               {path: "search/query?q=kind%3APod", want: "query q=kind%3APod by alice"},
		"opensearch answers nothing":            {path: "search/opensearch/api/v1/pods"},
		"another name":                          {path: "search/caches/api/v1/pods", wantError: "use cache, opensearch, query"},
		"the proxy has a native path":           {path: "proxying/karmada/proxy/api/v1/namespaces/ns/pods/p", want: "GET /api/v1/namespaces/ns/pods/p at karmada by alice"},
		"a write through the proxy":             {method: http.MethodPost, path: "proxying/x/proxy/api/v1/nodes", want: "POST /api/v1/nodes at x by alice"},
		"the strict proxy":                      {path: "proxying/strict/proxy/api", want: "GET /api at strict by alice"},
		"the root of the proxy":                 {path: "proxying/karmada/proxy", want: "GET / at karmada by alice"},
		"the root of the proxy with a slash":    {path: "proxying/karmada/proxy/", want: "GET / at karmada by alice"},
		"the proxy without its subresource":     {path: "proxying/karmada", wantError: "the path must go on with /proxy"},
		"the proxy with another subresource":    {path: "proxying/karmada/status/api/v1", wantError: "the path must go on with /proxy"},
		"a subresource that begins with proxy":  {path: "proxying/karmada/proxying/api/v1", wantError: "the path must go on with /proxy"},
		"dots in the path of a native resource": {path: "proxying/karmada/proxy/api/v1/nodes/a.b..c", want: "GET /api/v1/nodes/a.b..c at karmada by alice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := &recorder{}
			same := func(handler http.Handler) http.Handler { return handler }
			method := test.method
			if method == "" {
				method = http.MethodGet
			}
			req, info := newRequest(t, method, test.path)
			storage := rest.Connecter(&searchStorage{handler: served, wrap: same})
			if info.Resource == "proxying" {
				storage = &proxyingStorage{handler: served, wrap: same}
			}
			handler, err := storage.Connect(req.Context(), info.Name, nil, nil)
			if test.wantError != "" {
				if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), test.wantError) {
					t.Fatalf("got %v, want NotFound with %q", err, test.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, req)
			if diff := cmp.Diff(test.want, strings.Join(served.served, "; ")); diff != "" || response.Code != http.StatusOK {
				t.Errorf("code %d; served (-want +got):\n%s", response.Code, diff)
			}
		})
	}
}

func TestLongRunningRequests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method, path string
		want         bool
	}{
		"a watch of registries":             {path: "resourceregistries?watch=true", want: true},
		"a list of registries":              {path: "resourceregistries"},
		"a list through the proxy":          {path: "proxying/karmada/proxy/api/v1/pods"},
		"a watch through the proxy":         {path: "proxying/karmada/proxy/api/v1/pods?watch=1", want: true},
		"an old path of a watch":            {path: "proxying/karmada/proxy/api/v1/watch/pods", want: true},
		"logs":                              {path: "proxying/karmada/proxy/api/v1/namespaces/n/pods/p/log?follow=true", want: true},
		"a terminal":                        {method: http.MethodPost, path: "proxying/karmada/proxy/api/v1/namespaces/n/pods/p/exec", want: true},
		"a port forward":                    {method: http.MethodPost, path: "proxying/karmada/proxy/api/v1/namespaces/n/pods/p/portforward", want: true},
		"a proxied Service":                 {path: "proxying/karmada/proxy/api/v1/namespaces/n/services/s/proxy/x", want: true},
		"a scale":                           {path: "proxying/karmada/proxy/apis/apps/v1/namespaces/n/deployments/d/scale"},
		"an object that is called exec":     {path: "proxying/karmada/proxy/api/v1/namespaces/n/pods/exec"},
		"a namespace that is called watch":  {path: "proxying/karmada/proxy/api/v1/namespaces/watch/pods"},
		"discovery with the word watch":     {path: "proxying/karmada/proxy/apis?watch=true"},
		"a path without proxy":              {path: "proxying/karmada/api/v1/pods?watch=true"},
		"a watch of a query":                {path: "search/query?q=x&watch=true", want: true},
		"a query":                           {path: "search/query?q=x"},
		"a query that is not watched":       {path: "search/query?q=x&watch=false"},
		"the cache ignores watch":           {path: "search/cache/api/v1/pods?watch=true"},
		"the version":                       {path: ""},
		"a write of a registry with params": {method: http.MethodPut, path: "resourceregistries/r?watch=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method := test.method
			if method == "" {
				method = http.MethodGet
			}
			req, info := newRequest(t, method, test.path)
			if got := isLongRunning(req, info); got != test.want {
				t.Errorf("is long-running: %t, want %t", got, test.want)
			}
		})
	}
}
