// Package proxying is the global proxy. It serves all members' objects as if they were in one cluster.
//
// Lists and reads are sent to the members with the caller's identity. Lists at resourceVersion 0 and
// watches are served from the object cache, and the members review the caller's permissions for them.
// Writes and requests for subresources are sent to the only cluster that has the object.
//
// Invariants:
//   - A caller sees and changes only what the member permits this caller.
//   - A write is sent only to a cluster whose cached list or watch contained the object with a UID
//     before the request, and only if every other cluster responds during the request that the caller
//     does not find the object there. A cluster's response to a request for an object is not sufficient
//     to send it a write.
//   - A cluster that does not respond to a read is named in a warning. In strict mode, the request
//     fails. An incomplete list never looks like a complete list, and if it is unknown whether an
//     object exists, the response is never NotFound.
//   - A request's memory is limited by the size of pages, and does not depend on the size of a list.
package proxying

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/domain/fieldselection"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Reader sends requests to clusters.
type Reader interface {
	Do(ctx context.Context, cluster string, caller user.Info, request memberproxy.Request) (*http.Response, error)
}

// Forwarder forwards callers' requests to a cluster or to the control plane.
type Forwarder interface {
	Reader
	// Handler returns the handler that forwards a request to a path in the cluster.
	Handler(ctx context.Context, cluster string, caller user.Info, path string, responder rest.Responder) (http.Handler, error)
	// ForwardToKarmada forwards a request to a path in the control plane.
	ForwardToKarmada(w http.ResponseWriter, req *http.Request, path string, caller user.Info, responder rest.Responder)
}

// Permissions reports what a caller may do in a member. An error means that this is unknown.
type Permissions interface {
	Allowed(ctx context.Context, caller user.Info, cluster, verb string, resource schema.GroupVersionResource, namespace, name string) (bool,
		error)
}

// Options are the components that a Handler uses.
type Options struct {
	// Cache contains the objects of the kinds that registries select.
	Cache *objectcache.Cache
	// Reads sends reads and lists.
	Reads Reader
	// Forwards forwards writes, subresources, and requests for other kinds.
	Forwards Forwarder
	// Permissions determines which cached objects a caller sees.
	Permissions Permissions
	// MinRequestTimeout is the minimum time after which the server ends a watch that sets no timeout.
	// The maximum time is twice as long. 0 means 30 minutes.
	MinRequestTimeout time.Duration
	// Watches is called with 1 when a watch is opened and with -1 when it ends. It may be nil.
	Watches func(delta int)
}

// Handler serves the global proxy.
type Handler struct {
	options Options
	limits  Limits
	// lists limits the number of lists that read all clusters' pages in advance.
	lists    *semaphore.Weighted
	suspects suspects
}

// New returns a Handler. The zero value of limits selects the defaults.
func New(options Options, limits Limits) *Handler {
	if options.MinRequestTimeout == 0 {
		options.MinRequestTimeout = 30 * time.Minute
	}
	if options.Watches == nil {
		options.Watches = func(int) {}
	}
	limits = limits.withDefaults()
	return &Handler{options: options, limits: limits, lists: semaphore.NewWeighted(limits.Lists)}
}

// request is one request for a registered kind.
type request struct {
	*Handler
	w         http.ResponseWriter
	req       *http.Request
	path      string
	info      *genericrequest.RequestInfo
	kind      *objectcache.Kind
	caller    user.Info
	responder rest.Responder
	// isStrict means that one cluster's error fails the request.
	isStrict bool
	format   fanout.Format
	options  metainternalversion.ListOptions
	fields   fieldselection.Selector
	warnings fanout.Warnings
}

// Serve serves a request. nativePath is the path in a cluster, for example api/v1/pods. name is the
// name of the proxy in the request's path.
func (h *Handler) Serve(w http.ResponseWriter, req *http.Request, name, nativePath string, caller user.Info, responder rest.Responder) {
	path := "/" + strings.TrimPrefix(nativePath, "/")
	info, err := fanout.ParseRequest(req, path)
	if err == nil {
		err = memberproxy.ValidatePath(path)
	}
	if err != nil {
		responder.Error(err)
		return
	}
	kind := h.kindOf(info)
	if kind == nil {
		h.options.Forwards.ForwardToKarmada(w, req, path, caller, responder)
		return
	}
	r := &request{
		Handler: h, w: w, req: req, path: path, info: info, kind: kind, caller: caller, responder: responder,
		isStrict: name == searchv1alpha1.ProxyingStrict,
		warnings: fanout.Warnings{},
	}
	if err := r.serve(); err != nil {
		if !isStatus(err) && !errors.Is(err, context.Canceled) {
			err = fanout.NewUnavailableError("%v", err)
		}
		r.warnings.WriteTo(w.Header())
		responder.Error(err)
	}
}

// kindOf returns the registered kind that is requested, or nil if there is none.
func (h *Handler) kindOf(info *genericrequest.RequestInfo) *objectcache.Kind {
	if !info.IsResourceRequest {
		return nil
	}
	return h.options.Cache.Kind(schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource})
}

// serve serves the request. It returns an error only if nothing was written.
func (r *request) serve() error {
	if r.info.Subresource != "" {
		return r.forward()
	}
	switch r.info.Verb {
	case "get":
		return r.withFormat(r.get)
	case "list":
		return r.withFormat(r.list)
	case "watch":
		return r.withFormat(r.watch)
	}
	return r.forward()
}

// withFormat parses the options and the format of a read, and calls read.
func (r *request) withFormat(read func() error) (err error) {
	if r.format, err = fanout.NegotiateFormat(r.req.Header.Values("Accept")); err != nil {
		return err
	}
	if r.info.Verb != "get" {
		if err := r.parseListOptions(); err != nil {
			return err
		}
	}
	return read()
}
