package proxy

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// metadataOnly asks whether there is an object, and for no more.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// everywhere answers one request to all clusters.
type everywhere struct {
	proxy     *Proxy
	path      string
	caller    user.Info
	responder rest.Responder
}

func (e *everywhere) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := "/" + strings.Trim(e.path, "/")
	info, err := requests.NewRequestInfo(&http.Request{Method: req.Method, URL: &url.URL{Path: path, RawQuery: req.URL.RawQuery}})
	switch {
	case err != nil:
		e.responder.Error(apierrors.NewBadRequest(fmt.Sprintf("reading path %q: %v", path, err)))
	case !info.IsResourceRequest:
		if !redirectToSlash(strings.TrimSuffix(e.path, "/")+trailing(req.URL), w, req) {
			e.proxy.karmada.serve(w, req, e.path, e.caller, e.responder)
		}
	case info.Verb == "list":
		// A selector may name an object, which makes it no less a list.
		e.list(w, req)
	case info.Name != "" && info.Verb != "watch":
		e.forwardToHolder(w, req, info)
	default:
		e.responder.Error(apierrors.NewMethodNotSupported(resourceOf(info), info.Verb))
	}
}

// forwardToHolder passes a request on to the one cluster that has the object.
func (e *everywhere) forwardToHolder(w http.ResponseWriter, req *http.Request, info *genericrequest.RequestInfo) {
	answers, err := e.ask(req.Context(), question{
		path: objectPath(e.path, info), accept: metadataOnly, limit: e.proxy.room.lookup, time: e.proxy.limits.lookup,
	})
	if err != nil {
		e.responder.Error(err)
		return
	}
	var names []string
	var holder *way
	for _, said := range answers {
		if said.err == nil && said.code == http.StatusOK {
			names, holder = append(names, said.cluster), said.way
		}
	}
	switch len(names) {
	case 0:
		warn(w, answers)
		e.responder.Error(failure(http.StatusNotFound, metav1.StatusReasonNotFound, "resource not found or don't have permission to get it"))
	case 1:
		(&passage{way: holder, path: e.path, responder: e.responder}).ServeHTTP(w, req)
	default:
		e.responder.Error(failure(http.StatusConflict, metav1.StatusReasonConflict,
			"conflict resource, exist in more than one cluster: %s", strings.Join(names, ",")))
	}
}

// objectPath is the path that tells whether there is an object. Of the subresources
// only these can be read without doing anything.
func objectPath(path string, info *genericrequest.RequestInfo) string {
	if info.Subresource == "" || info.Subresource == "status" || info.Subresource == "scale" {
		return path
	}
	parts := []string{"", info.APIPrefix}
	if info.APIGroup != "" {
		parts = append(parts, info.APIGroup)
	}
	parts = append(parts, info.APIVersion)
	if info.Namespace != "" && info.Resource != "namespaces" {
		parts = append(parts, "namespaces", info.Namespace)
	}
	return strings.Join(append(parts, info.Resource, info.Name), "/")
}

// list concatenates what all clusters have. There are no pages: a token for the
// next one would be good in one cluster only. So would be a version, other than the
// one that stands for any.
func (e *everywhere) list(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	query.Del("limit")
	query.Del("continue")
	if query.Get("resourceVersion") != "0" {
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
	}
	answers, err := e.ask(req.Context(), question{
		path: e.path, query: query, accept: jsonOf(req.Header.Values("Accept")), limit: e.proxy.room.member, time: e.proxy.limits.answer, keep: true,
	})
	if err != nil {
		e.responder.Error(err)
		return
	}
	defer dropAll(answers)
	merged, header, err := merge(req.Context(), answers)
	warn(w, answers)
	switch {
	case err != nil:
		e.responder.Error(noRoom(e.proxy.room.all))
		return
	case header == nil:
		e.responder.Error(failure(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"))
		return
	}
	for _, name := range append(hopHeaders, "Content-Length", "Content-Encoding", "Warning") {
		header.Del(name)
	}
	maps.Copy(w.Header(), header)
	// A client that does not read would hold the room of others.
	controller := http.NewResponseController(w)
	_ = controller.SetWriteDeadline(time.Now().Add(e.proxy.limits.delivery))
	w.WriteHeader(http.StatusOK)
	if merged.write(w) == nil {
		_ = controller.SetWriteDeadline(time.Time{})
	}
}

// merge makes one list of the answers, and returns it with the header of the first one.
// An answer that cannot be added gets an error. The header is nil if there is no list.
func merge(ctx context.Context, answers []answer) (*list, http.Header, error) {
	var merged list
	var header http.Header
	for i := range answers {
		said := &answers[i]
		if said.err != nil || said.code != http.StatusOK {
			continue
		}
		said.err = merged.add(said.cluster, said.body, func(n int64) error { return said.grant.take(ctx, n) })
		said.body = nil
		switch {
		case errors.Is(said.err, errNoRoom):
			return nil, nil, errNoRoom
		case said.err != nil:
			said.drop()
		case header == nil:
			header = said.header
		}
	}
	return &merged, header, nil
}

// jsonOf are the media types of an Accept header that lists can be merged in.
func jsonOf(accept []string) string {
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

func resourceOf(info *genericrequest.RequestInfo) schema.GroupResource {
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
}
