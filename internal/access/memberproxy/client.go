package memberproxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Client sends requests of one caller to one member. The member authorizes them as requests of the
// caller.
type Client struct {
	member *memberClient
}

// Request is a request that this server itself creates.
type Request struct {
	// Method is the HTTP method.
	Method string
	// Path is the path in the member, such as /api/v1/pods.
	Path string
	// Query is the query. nil means that there is none.
	Query url.Values
	// Header is the header. It must contain no credentials.
	Header http.Header
	// Body is the body. Empty means that there is none.
	Body []byte
	// Idle limits the time in which the member sends no data. 0 means the limit of forwarded
	// requests. Watches and logs have no limit after the member responded.
	Idle time.Duration
}

// Client returns a client for a cluster. It sends no request.
func (p *Proxy) Client(ctx context.Context, cluster *clusterv1alpha1.Cluster, caller user.Info) (*Client, error) {
	client, err := p.newMemberClient(ctx, cluster, caller)
	if err != nil {
		return nil, err
	}
	return &Client{member: client}, nil
}

// Do sends a request. It occupies a slot of the budgets of the member until the body of the
// response is closed. The error is a Status that names the cluster and the remedy. A response with
// an error code is no error.
func (c *Client) Do(ctx context.Context, request Request) (*http.Response, error) {
	client := *c.member
	if request.Idle > 0 {
		client.timeouts.idle = request.Idle
	}
	target, err := targetURL(client.cluster, request.Path, &url.URL{Path: request.Path, RawQuery: request.Query.Encode()})
	if err != nil {
		return nil, err
	}
	header := request.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	out := &http.Request{Method: request.Method, URL: target, Host: target.Host, Header: header}
	if len(request.Body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(request.Body)), int64(len(request.Body))
	}
	release, err := client.acquireSlots(out, target, false)
	if err != nil {
		return nil, err
	}
	ctx, end := withLinkedCancel(ctx, client.member.ctx)
	done := func() { end(nil); release() }
	// A watch has no idle timeout, but the member must accept it in time.
	accepted := time.AfterFunc(client.timeouts.idle, func() { end(errIdle) })
	resp, err := client.sendPlain(out.WithContext(ctx))
	accepted.Stop()
	if err != nil {
		done()
		return nil, err
	}
	resp.Body = OnClose(resp.Body, done)
	return resp, nil
}

// Handler returns a handler that forwards a request of the caller to a path of the member, also a
// request to switch protocols.
func (c *Client) Handler(path string, responder rest.Responder) http.Handler {
	return &forwarder{client: c.member, path: path, responder: responder}
}

// ForwardToKarmada forwards a request to the Karmada API server. The caller gets no additional
// rights, because this server impersonates the caller.
func (p *Proxy) ForwardToKarmada(w http.ResponseWriter, req *http.Request, path string, caller user.Info, responder rest.Responder) {
	p.karmada.forward(w, req, path, caller, responder)
}

// OnClose returns a body that calls done once, when it is closed for the first time.
func OnClose(body io.ReadCloser, done func()) io.ReadCloser {
	return closeNotifier{body, sync.OnceFunc(done)}
}

// closeNotifier is a body that calls done when it is closed.
type closeNotifier struct {
	io.ReadCloser
	done func()
}

func (c closeNotifier) Close() error {
	defer c.done()
	return c.ReadCloser.Close()
}
