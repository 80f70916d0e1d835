package search

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// streams are the subresources that may send data for a long time.
var streams = []string{"attach", "exec", "proxy", "log", "portforward"}

// isLongRunning reports whether a request may take longer than the timeout of requests: watches of
// registries and of queries, and the native requests of the global proxy that are watches, logs,
// terminals and other streams.
func isLongRunning(req *http.Request, info *request.RequestInfo) bool {
	if !info.IsResourceRequest || info.APIGroup != searchv1alpha1.GroupName {
		return false
	}
	switch info.Resource {
	case searchv1alpha1.ProxyingResource:
		native, ok := nativePath(pathAfterName(info))
		return ok && isNativeLongRunning(req, native)
	case searchv1alpha1.SearchResource:
		isWatch, err := strconv.ParseBool(req.URL.Query().Get("watch"))
		return info.Name == searchv1alpha1.SearchQuery && err == nil && isWatch
	}
	return info.Verb == "watch"
}

// isNativeLongRunning reports whether a member serves a native request for a long time.
func isNativeLongRunning(req *http.Request, path string) bool {
	parser := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := parser.NewRequestInfo(&http.Request{Method: req.Method, URL: &url.URL{Path: path, RawQuery: req.URL.RawQuery}})
	if err != nil || !info.IsResourceRequest {
		return false
	}
	return info.Verb == "watch" || slices.Contains(streams, info.Subresource)
}
