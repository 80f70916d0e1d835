package memberproxy

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// client sends requests to one member, with the identity of a caller or of the control plane.
type client struct {
	cluster *clusterv1alpha1.Cluster
	member  *member
	// caller is the user to impersonate with the token, or nil for the control plane's own identity.
	caller user.Info
	token  string
	// freshToken reads the token without a cache.
	freshToken func(ctx context.Context) (string, error)
	timeouts   timeouts
	// shared are the slots that all members share.
	shared slots
}

// Request is a request that this process itself creates.
type Request struct {
	// Method is the HTTP method.
	Method string
	// Path is the path in the member, such as /api/v1/pods.
	Path string
	// Query is the query, or nil.
	Query url.Values
	// Header is the header. It must contain no credentials.
	Header http.Header
	// Body is the body. It may be empty.
	Body []byte
	// Idle limits the time in which the member sends no data. The default is the idle timeout of
	// forwarded requests. Idle does not apply to the bodies of watches and logs.
	Idle time.Duration
}

// Do sends the caller's request to the cluster. The request occupies a slot of the member's budgets
// until the response's body is closed. An error is a Status that names the cluster and the remedy. A
// response with an error code is not an error.
func (p *Proxy) Do(ctx context.Context, cluster string, caller user.Info, request Request) (*http.Response, error) {
	c, err := p.clientFor(ctx, cluster, caller)
	if err != nil {
		return nil, err
	}
	return c.do(ctx, request)
}

// Handler returns a handler that forwards the caller's requests to the given path in the cluster. It
// also forwards requests to switch protocols.
func (p *Proxy) Handler(ctx context.Context, cluster string, caller user.Info, path string,
	responder rest.Responder) (http.Handler, error) {
	c, err := p.clientFor(ctx, cluster, caller)
	if err != nil {
		return nil, err
	}
	return &forwarder{client: c, path: path, responder: responder}, nil
}

// ForwardToKarmada forwards a request to the Karmada API server. It impersonates the caller, so the
// caller gets no additional permissions.
func (p *Proxy) ForwardToKarmada(w http.ResponseWriter, req *http.Request, path string, caller user.Info, responder rest.Responder) {
	p.karmada.forward(w, req, path, caller, responder)
}

// Own sends requests to members with the control plane's own identity.
type Own struct{ Proxy *Proxy }

// Do sends a request to the cluster as Proxy.Do does, but ignores the caller.
func (o Own) Do(ctx context.Context, cluster string, _ user.Info, request Request) (*http.Response, error) {
	found, err := o.Proxy.sources.Cluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	c, err := o.Proxy.newClient(ctx, found, nil)
	if err != nil {
		return nil, err
	}
	return c.do(ctx, request)
}

// clientFor returns a client that impersonates the caller in the named cluster.
func (p *Proxy) clientFor(ctx context.Context, name string, caller user.Info) (*client, error) {
	if caller == nil {
		return nil, apierrors.NewUnauthorized("no user to impersonate in the cluster")
	}
	cluster, err := p.sources.Cluster(ctx, name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			p.RemoveMember(name)
		}
		return nil, err
	}
	return p.newClient(ctx, cluster, caller)
}

// newClient returns a client for the cluster. It sends no request. A nil caller means the control
// plane's own identity.
func (p *Proxy) newClient(ctx context.Context, cluster *clusterv1alpha1.Cluster, caller user.Info) (*client, error) {
	if cluster.Spec.APIEndpoint == "" {
		remedy := "set it to the URL of the member's API server"
		if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
			remedy = "start the agent with --cluster-api-endpoint"
		}
		return nil, newUnavailableError(cluster, fmt.Errorf("spec.apiEndpoint is empty: %s", remedy))
	}
	token, err := readToken(ctx, cluster, caller == nil, p.sources.Secret)
	if err != nil {
		return nil, err
	}
	caBundle, err := caBundle(ctx, cluster, p.sources.Secret)
	if err != nil {
		return nil, err
	}
	member, err := p.members.get(cluster, caBundle)
	if err != nil {
		return nil, newUnavailableError(cluster, err)
	}
	return &client{
		cluster: cluster, member: member, caller: caller, token: token, timeouts: p.timeouts, shared: p.shared,
		freshToken: func(ctx context.Context) (string, error) {
			return readToken(ctx, cluster, caller == nil, p.sources.FreshSecret)
		},
	}, nil
}

func (c *client) do(ctx context.Context, request Request) (*http.Response, error) {
	call, err := c.newCall(request.Method, request.Path, &url.URL{Path: request.Path, RawQuery: request.Query.Encode()}, false)
	if err != nil {
		return nil, err
	}
	call.idle = cmp.Or(request.Idle, call.idle)
	ctx, done, err := call.begin(ctx)
	if err != nil {
		return nil, err
	}
	// A watch has no idle timeout, but the member must accept it within the idle time.
	accepted := time.AfterFunc(call.idle, func() { call.end(errIdle) })
	out := (&http.Request{Method: request.Method, URL: call.target, Host: call.target.Host, Header: http.Header{}}).WithContext(ctx)
	if request.Header != nil {
		out.Header = request.Header.Clone()
	}
	if len(request.Body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(request.Body)), int64(len(request.Body))
	}
	resp, err := call.RoundTrip(out)
	accepted.Stop()
	if err != nil {
		done()
		return nil, err
	}
	resp.Body = OnClose(resp.Body, done)
	return resp, nil
}

// OnClose returns a body that calls done when it is closed for the first time.
func OnClose(body io.ReadCloser, done func()) io.ReadCloser {
	return watchedBody{ReadCloser: body, onClose: sync.OnceFunc(done)}
}
