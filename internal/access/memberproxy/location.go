package memberproxy

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// maxEscapes is the maximum number of times that a path may be percent-encoded in addition to its URL's
// encoding.
const maxEscapes = 3

// ValidatePath rejects paths that contain "..", because several endpoints may share a host, and such a
// path could reach another endpoint on this host. It also rejects paths that lead to another control
// plane proxy, because otherwise one request could pass the control plane's servers hundreds of times.
// It checks all forms of the path that a server could decode.
func ValidatePath(path string) error {
	for range maxEscapes + 1 {
		segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
		segments = slices.DeleteFunc(segments, func(segment string) bool { return segment == "." })
		if slices.Contains(segments, "..") {
			return apierrors.NewBadRequest(fmt.Sprintf(`path %q must not contain ".."`, path))
		}
		if proxy := findProxy(segments); proxy != "" {
			return apierrors.NewBadRequest(fmt.Sprintf(
				"a proxied path must not contain the path of another proxy, %s: send the request to /apis/%s of the control plane",
				proxy, proxy))
		}
		decoded, err := url.PathUnescape(path)
		if err != nil || decoded == path {
			return nil //nolint:nilerr // no server can decode the path again
		}
		path = decoded
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the path is percent-encoded more than %d times", maxEscapes))
}

// findProxy returns the first control plane proxy in the path segments, without /apis. It returns an
// empty string if there is none.
func findProxy(segments []string) string {
	for i, group := range segments {
		resource := segments[i:]
		switch {
		case group == searchv1alpha1.GroupName && len(resource) > 2 && resource[2] == searchv1alpha1.ProxyingResource:
			return strings.Join(resource[:3], "/")
		case group == clusterv1alpha1.GroupName && len(resource) > 4 && resource[2] == "clusters" && resource[4] == "proxy":
			return strings.Join(resource[:5], "/")
		}
	}
	return ""
}

// targetURL returns the URL in the member for path. The URL is below the cluster's endpoint, and has
// the request's query and escaping.
func targetURL(cluster *clusterv1alpha1.Cluster, path string, request *url.URL) (*url.URL, error) {
	endpoint, err := url.Parse(cluster.Spec.APIEndpoint)
	if err != nil {
		return nil, newUnavailableError(cluster, fmt.Errorf("parsing spec.apiEndpoint: %w", err))
	}
	return joinURL(endpoint, path, request), nil
}

// joinURL joins an endpoint and a path. For an empty path it adds a slash only if the request's path
// ends with a slash.
func joinURL(endpoint *url.URL, path string, request *url.URL) *url.URL {
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
	if raw, ok := escapedSuffix(path, request); ok {
		// url.URL ignores RawPath if it does not match Path.
		target.RawPath = rawBase + raw
	}
	return &target
}

// escapedSuffix returns the escaped form of path, which the request's URL must end with. It preserves
// escaped slashes in names.
func escapedSuffix(path string, request *url.URL) (string, bool) {
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

// redirectToSlash redirects a read of an empty path in the member to the same URL with a trailing
// slash, because relative links require the slash. It reports whether it wrote a redirect.
func redirectToSlash(path string, w http.ResponseWriter, req *http.Request) bool {
	if strings.TrimSuffix(path, "/") != "" || strings.HasSuffix(req.URL.Path, "/") ||
		req.Method != http.MethodGet && req.Method != http.MethodHead {
		return false
	}
	to := url.URL{Path: req.URL.Path + "/", RawQuery: req.URL.RawQuery}
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusMovedPermanently)
	return true
}
