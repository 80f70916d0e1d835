// Package fanout merges many members' responses to the same request.
//
// Invariants:
//   - A merged object names its cluster in an annotation. All other bytes of the object stay unchanged.
//   - A cluster whose response is missing is named in a warning, and an incomplete list never looks
//     like a complete list.
//   - An error response proves that a cluster does not have an object only if it is an API server's
//     Status about this object. Any other error response may come from a gateway in front of the
//     cluster.
package fanout

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"karmada.io/karmada/internal/domain/conditions"
)

// maxWarnings limits the number of Warning headers in a response.
const maxWarnings = 20

// requestInfoFactory parses the paths of member API servers.
var requestInfoFactory = genericrequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// ParseRequest parses a request whose path in the member is path, for example /api/v1/pods.
func ParseRequest(req *http.Request, path string) (*genericrequest.RequestInfo, error) {
	info, err := requestInfoFactory.NewRequestInfo(&http.Request{Method: req.Method, URL: &url.URL{Path: path, RawQuery: req.URL.RawQuery}})
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("parsing path %q: %v", path, err))
	}
	return info, nil
}

// ResourcePath returns the path of a collection in the namespace or, if name is not empty, of one
// object. An empty namespace means all namespaces.
func ResourcePath(info *genericrequest.RequestInfo, namespace, name string) string {
	path := "/api/" + info.APIVersion
	if info.APIGroup != "" {
		path = "/apis/" + info.APIGroup + "/" + info.APIVersion
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	if path += "/" + info.Resource; name != "" {
		path += "/" + name
	}
	return path
}

// InParallel calls do for each index below count, and returns when all calls have returned.
func InParallel(count int, do func(i int)) {
	var calls sync.WaitGroup
	for i := range count {
		calls.Go(func() { do(i) })
	}
	calls.Wait()
}

// Warnings contains one warning for each cluster whose response is missing or outdated, by cluster
// name.
type Warnings map[string]string

// Add adds a cluster's warning. If the cluster already has a warning, Add does nothing.
func (w Warnings) Add(cluster, text string) {
	if _, found := w[cluster]; !found {
		w[cluster] = text
	}
}

// Clusters returns the sorted names of the clusters that have a warning.
func (w Warnings) Clusters() []string { return slices.Sorted(maps.Keys(w)) }

// WriteTo adds a Warning header for each cluster, sorted by cluster name. If there are too many
// clusters, the last header names all remaining ones.
func (w Warnings) WriteTo(header http.Header) {
	clusters := w.Clusters()
	for i, cluster := range clusters {
		text := w[cluster]
		isLast := i == maxWarnings-1
		if isLast && len(clusters) > maxWarnings {
			text = "further clusters with problems: " + strings.Join(clusters[i:], ", ")
		}
		text = strings.Join(strings.Fields(conditions.LimitMessage(conditions.ToPrintable(text))), " ")
		if line, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			header.Add("Warning", line)
		}
		if isLast {
			return
		}
	}
}

// NewStatusError returns an error that a client receives with the given status code.
func NewStatusError(code int32, reason metav1.StatusReason, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

// NewUnavailableError returns an error with the status code 503.
func NewUnavailableError(format string, args ...any) *apierrors.StatusError {
	return NewStatusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, format, args...)
}

// WithRetryAfter makes err ask clients to retry after one second. Most clients then repeat the request.
func WithRetryAfter(err *apierrors.StatusError) *apierrors.StatusError {
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}
