package search

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// SearchHandler serves the resource "search".
type SearchHandler interface {
	// ServeCache returns the cached objects at the path of a Kubernetes API, such as
	// /apis/apps/v1/deployments.
	ServeCache(w http.ResponseWriter, req *http.Request, nativePath string, query url.Values, caller user.Info)
	// ServeQuery returns the objects that match the query in the URL.
	ServeQuery(w http.ResponseWriter, req *http.Request, caller user.Info)
}

// ProxyHandler serves the resource "proxying".
type ProxyHandler interface {
	// Serve forwards a request to the clusters. name is the name in the path of the request. The
	// name searchv1alpha1.ProxyingStrict asks for strict mode. nativePath begins with a slash.
	Serve(w http.ResponseWriter, req *http.Request, name, nativePath string, caller user.Info, responder rest.Responder)
}

// connection is one request to a resource that is not stored.
type connection struct {
	name string
	// path is the part of the path after the name. It is empty, or begins with a slash.
	path      string
	caller    user.Info
	responder rest.Responder
}

func newConnection(ctx context.Context, name string, responder rest.Responder) (*connection, error) {
	info, hasInfo := request.RequestInfoFrom(ctx)
	caller, hasCaller := request.UserFrom(ctx)
	if !hasInfo || !hasCaller {
		return nil, apierrors.NewUnauthorized("the request has no user")
	}
	return &connection{name: name, path: pathAfterName(info), caller: caller, responder: responder}, nil
}

// nameIndex is the index of the name in the parts of a cluster-scoped object's path.
const nameIndex = 1

// pathAfterName returns the part of the path of a request after the name of the object, with its
// trailing slash.
func pathAfterName(info *request.RequestInfo) string {
	if len(info.Parts) <= nameIndex+1 {
		return ""
	}
	path := "/" + strings.Join(info.Parts[nameIndex+1:], "/")
	if strings.HasSuffix(info.Path, "/") {
		path += "/"
	}
	return path
}

// searchStorage serves the resource "search". It is never stored.
type searchStorage struct {
	handler SearchHandler
	// wrap wraps the handler of each request.
	wrap func(http.Handler) http.Handler
}

var (
	_ rest.Storage              = &searchStorage{}
	_ rest.Scoper               = &searchStorage{}
	_ rest.Connecter            = &searchStorage{}
	_ rest.SingularNameProvider = &searchStorage{}
)

// New returns an empty object of the resource.
func (s *searchStorage) New() runtime.Object { return &searchv1alpha1.Search{} }

// Destroy does nothing.
func (s *searchStorage) Destroy() {}

// NamespaceScoped returns false, because the resource is cluster-scoped.
func (s *searchStorage) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name of the resource.
func (s *searchStorage) GetSingularName() string { return searchv1alpha1.SearchResource }

// ConnectMethods returns the HTTP methods that are served.
func (s *searchStorage) ConnectMethods() []string { return []string{http.MethodGet} }

// NewConnectOptions specifies that there are no options, and that the name may have a path.
func (s *searchStorage) NewConnectOptions() (runtime.Object, bool, string) { return nil, true, "" }

// Connect returns the handler of one request.
func (s *searchStorage) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	c, err := newConnection(ctx, name, responder)
	if err != nil {
		return nil, err
	}
	known := []string{searchv1alpha1.SearchCache, searchv1alpha1.SearchOpenSearch, searchv1alpha1.SearchQuery}
	if !slices.Contains(known, name) {
		return nil, notFound(searchv1alpha1.SearchResource, name, "use "+strings.Join(known, ", "))
	}
	return s.wrap(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, c) })), nil
}

func (s *searchStorage) serve(w http.ResponseWriter, req *http.Request, c *connection) {
	switch c.name {
	case searchv1alpha1.SearchCache:
		s.handler.ServeCache(w, req, c.path, req.URL.Query(), c.caller)
	case searchv1alpha1.SearchQuery:
		s.handler.ServeQuery(w, req, c.caller)
	default:
		w.WriteHeader(http.StatusOK) // existing clients expect an empty response
	}
}

// proxyingStorage serves the resource "proxying". It is never stored.
type proxyingStorage struct {
	handler ProxyHandler
	// wrap wraps the handler of each request.
	wrap func(http.Handler) http.Handler
}

var (
	_ rest.Storage              = &proxyingStorage{}
	_ rest.Scoper               = &proxyingStorage{}
	_ rest.Connecter            = &proxyingStorage{}
	_ rest.SingularNameProvider = &proxyingStorage{}
)

// New returns an empty object of the resource.
func (p *proxyingStorage) New() runtime.Object { return &searchv1alpha1.Proxying{} }

// Destroy does nothing.
func (p *proxyingStorage) Destroy() {}

// NamespaceScoped returns false, because the resource is cluster-scoped.
func (p *proxyingStorage) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name of the resource.
func (p *proxyingStorage) GetSingularName() string { return searchv1alpha1.ProxyingResource }

// ConnectMethods returns the HTTP methods that are forwarded.
func (p *proxyingStorage) ConnectMethods() []string {
	return []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodHead, http.MethodOptions,
	}
}

// NewConnectOptions specifies that there are no options, and that the name may have a path.
func (p *proxyingStorage) NewConnectOptions() (runtime.Object, bool, string) { return nil, true, "" }

// Connect returns the handler of one request.
func (p *proxyingStorage) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	c, err := newConnection(ctx, name, responder)
	if err != nil {
		return nil, err
	}
	path, ok := nativePath(c.path)
	if !ok {
		return nil, notFound(searchv1alpha1.ProxyingResource, name,
			"the path must go on with /proxy and the path of the request, such as /proxy/api/v1/pods")
	}
	return p.wrap(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p.handler.Serve(w, req, c.name, path, c.caller, c.responder)
	})), nil
}

// nativePath returns the part of a path after the subresource "proxy". It begins with a slash.
func nativePath(path string) (string, bool) {
	native, ok := strings.CutPrefix(path, proxySegment)
	switch {
	case !ok || native != "" && native[0] != '/':
		return "", false
	case native == "":
		return "/", true
	}
	return native, true
}

const proxySegment = "/proxy"

// notFound returns an error that contains the remedy.
func notFound(resource, name, remedy string) error {
	err := apierrors.NewNotFound(searchv1alpha1.Resource(resource), name)
	err.ErrStatus.Message += ": " + remedy
	return err
}
