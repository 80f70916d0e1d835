package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// checkPath refuses paths with which a server behind the endpoint might be led out
// of it: an endpoint may be one of many below a common host.
func checkPath(path string) error {
	if slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), "..") {
		return apierrors.NewBadRequest(fmt.Sprintf(`path %q must not contain ".."`, path))
	}
	return nil
}

// location is where a request for path goes: below the endpoint of the cluster,
// with the query of the request, and spelled as in the request.
func location(cluster *clusterv1alpha1.Cluster, path string, request *url.URL) (*url.URL, error) {
	endpoint, err := url.Parse(cluster.Spec.APIEndpoint)
	if err != nil {
		return nil, unavailable(cluster, fmt.Errorf("reading spec.apiEndpoint: %w", err))
	}
	return below(endpoint, path, request), nil
}

// below joins an endpoint and a path. An empty path stays empty unless the request
// ends in a slash.
func below(endpoint *url.URL, path string, request *url.URL) *url.URL {
	target := *endpoint
	target.Fragment, target.RawFragment = "", ""
	target.RawQuery = request.RawQuery
	base, rawBase := strings.TrimSuffix(endpoint.Path, "/"), strings.TrimSuffix(endpoint.EscapedPath(), "/")
	if path != "" && !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	if strings.HasSuffix(request.Path, "/") && !strings.HasSuffix(path, "/") {
		path += "/"
	}
	target.Path, target.RawPath = base+path, ""
	if raw, ok := spelling(path, request); ok {
		// URL ignores a spelling that does not fit its path.
		target.RawPath = rawBase + raw
	}
	return &target
}

// spelling is how the request spells the path that it ends in, which matters where
// a slash is part of a name.
func spelling(path string, request *url.URL) (string, bool) {
	escaped := request.EscapedPath()
	for at := len(escaped); at >= 0; at = strings.LastIndexByte(escaped[:at], '/') {
		plain, err := url.PathUnescape(escaped[at:])
		if err != nil || len(plain) > len(path) {
			return "", false
		}
		if plain == path {
			return escaped[at:], true
		}
	}
	return "", false
}

// redirectToSlash sends readers of an empty path to the same URL with a slash, as
// relative links need. It reports whether it did.
func redirectToSlash(path string, w http.ResponseWriter, req *http.Request) bool {
	if path != "" || req.Method != http.MethodGet && req.Method != http.MethodHead {
		return false
	}
	to := url.URL{Path: req.URL.Path + "/", RawQuery: req.URL.RawQuery}
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusMovedPermanently)
	return true
}
