package memberproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// allClustersHandler serves one request that is sent to all clusters.
type allClustersHandler struct {
	proxy     *Proxy
	path      string
	caller    user.Info
	responder rest.Responder
}

func (e *allClustersHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := "/" + strings.Trim(e.path, "/")
	info, err := requestInfoFactory.NewRequestInfo(&http.Request{Method: req.Method, URL: &url.URL{Path: path, RawQuery: req.URL.RawQuery}})
	switch {
	case err != nil:
		e.responder.Error(apierrors.NewBadRequest(fmt.Sprintf("parsing path %q: %v", path, err)))
	case !info.IsResourceRequest:
		if !redirectToSlash(strings.TrimSuffix(e.path, "/")+trailingSlash(req.URL), w, req) {
			e.proxy.karmada.forward(w, req, e.path, e.caller, e.responder)
		}
	case info.Verb == "list":
		// Check this case before the name: a field selector may set the name, but the request is
		// still a list.
		e.list(w, req, info)
	case info.Name != "" && info.Verb != "watch":
		e.forwardToHolder(w, req, info)
	default:
		e.responder.Error(apierrors.NewMethodNotSupported(groupResource(info), info.Verb))
	}
}

// list concatenates the lists of all clusters. It rejects a continue token and a resourceVersion
// other than 0, because both are valid in one cluster only. The resourceVersion 0 means any
// version.
func (e *allClustersHandler) list(w http.ResponseWriter, req *http.Request, info *genericrequest.RequestInfo) {
	query := req.URL.Query()
	query.Del("limit")
	query.Del("continue")
	if query.Get("resourceVersion") != "0" {
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
	}
	responses, err := e.fanOut(req.Context(), fanoutRequest{
		path: e.path, query: query, accept: jsonMediaTypes(req.Header.Values("Accept")), maxBytes: e.proxy.memory.member, timeout: e.proxy.timeouts.list, keepBody: true,
	})
	if err != nil {
		e.responder.Error(err)
		return
	}
	defer discardAll(responses)
	markUnknown(responses, info)
	merged, header, err := mergeResponses(req.Context(), responses)
	addWarnings(w, responses)
	switch {
	case err != nil:
		e.responder.Error(memoryExhausted(e.proxy.memory.all))
		return
	case header == nil && len(unknownClusters(responses)) > 0:
		e.responder.Error(newUnknownListError(info, responses))
		return
	case header == nil:
		e.responder.Error(newStatusError(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"))
		return
	}
	for _, name := range append(hopHeaders, "Content-Length", "Content-Encoding", "Warning") {
		header.Del(name)
	}
	maps.Copy(w.Header(), header)
	// Limit the time, because a client that does not read would occupy memory that other requests
	// need.
	controller := http.NewResponseController(w)
	_ = controller.SetWriteDeadline(time.Now().Add(e.proxy.timeouts.clientRead))
	w.WriteHeader(http.StatusOK)
	if merged.writeTo(w) == nil {
		_ = controller.SetWriteDeadline(time.Time{})
	}
}

// mergeResponses merges the responses to one list, and returns the list with the header of the
// first response. If a response cannot be merged, its error is set. The header is nil if there is
// no list.
func mergeResponses(ctx context.Context, responses []clusterResponse) (*mergedList, http.Header, error) {
	var merged mergedList
	var header http.Header
	for i := range responses {
		response := &responses[i]
		if response.err != nil || response.code != http.StatusOK {
			continue
		}
		response.err = merged.add(response.cluster, response.body, func(n int64) error { return response.memory.reserve(ctx, n) })
		response.body = nil
		switch {
		case errors.Is(response.err, errMemoryExhausted):
			return nil, nil, errMemoryExhausted
		case response.err != nil:
			response.discard()
		case header == nil:
			header = response.header
		}
	}
	return &merged, header, nil
}

// jsonMediaTypes returns the media types of an Accept header that request lists which can be
// merged.
func jsonMediaTypes(accept []string) string {
	var kept []string
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		if part = strings.TrimSpace(part); strings.HasPrefix(part, "application/json") {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}
