package memberproxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericfilters "k8s.io/apiserver/pkg/server/filters"

	"karmada.io/karmada/internal/access/fanout"
)

// flushInterval is the maximum time for which a response of known length is buffered. Responses of
// unknown length, such as watches, are flushed immediately.
const flushInterval = 200 * time.Millisecond

// isLongRunning reports whether a request may run for a long time without data.
var isLongRunning = genericfilters.BasicLongRunningRequestCheck(
	sets.NewString("watch"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))

// forwarder forwards one request to one member.
type forwarder struct {
	client    *client
	path      string
	responder rest.Responder
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c, err := f.client.newCall(req.Method, f.path, req.URL, isUpgrade(req.Header))
	if err != nil {
		f.responder.Error(err)
		return
	}
	ctx, done, err := c.begin(req.Context())
	if err != nil {
		f.responder.Error(err)
		return
	}
	defer done()
	req = req.WithContext(ctx)
	c.writer = w
	switch {
	case !c.isUpgrade:
		if !redirectToSlash(f.path, w, req) {
			forward(w, req, c.target, c, f.responder)
		}
	case hasNoBody(w, req, c.timeouts.errorBody):
		req.Body, req.ContentLength, req.TransferEncoding = http.NoBody, 0, nil
		forward(upgradeWriter{w, c.timeouts.halfClosed, func() { c.end(errIdle) }}, req, c.target, c, f.responder)
	default:
		// Reject the body, because its bytes could not be distinguished from the stream's bytes. Close
		// the connection, so that the error response does not wait for the rest of the body.
		w.Header().Set("Connection", "close")
		f.responder.Error(apierrors.NewBadRequest("a request to switch protocols must not have a body"))
	}
}

// forward sends a request to target through transport, and copies the response to w.
func forward(w http.ResponseWriter, req *http.Request, target *url.URL, transport http.RoundTripper, responder rest.Responder) {
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = target
			r.Out.Host = target.Host
			filterRequestHeader(r.Out.Header)
			r.Out.Trailer = nil
		},
		Transport:     transport,
		FlushInterval: flushInterval,
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
				err = newInvalidUpgradeError(target.Host, err.Error())
			}
			responder.Error(err)
		},
		// Do not log errors in the middle of a response, because the closed connection reports them to
		// the client.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	proxy.ServeHTTP(w, req)
}

// call is a caller's request to a member. It implements http.RoundTripper.
type call struct {
	*client
	target        *url.URL
	info          *genericrequest.RequestInfo
	isUpgrade     bool
	isLongRunning bool
	// idle limits the time in which no data passes between the client and the member, unless the
	// request is long-running.
	idle time.Duration
	// writer receives the response while it is being read. It may be nil.
	writer http.ResponseWriter
	// end cancels the context of the request.
	end context.CancelCauseFunc
}

// newCall returns a call for path in the member, with the query and the escaping of request.
func (c *client) newCall(method, path string, request *url.URL, isUpgrade bool) (*call, error) {
	target, err := targetURL(c.cluster, path, request)
	if err != nil {
		return nil, err
	}
	req := &http.Request{Method: method, URL: &url.URL{RawQuery: request.RawQuery}}
	info, err := fanout.ParseRequest(req, "/"+strings.TrimPrefix(path, "/"))
	if err != nil {
		info = &genericrequest.RequestInfo{}
	}
	return &call{
		client: c, target: target, info: info, isUpgrade: isUpgrade, isLongRunning: isLongRunning(req, info), idle: c.timeouts.idle,
	}, nil
}

// begin acquires the request's slots, and returns the context with which to send the request. done ends
// the context and releases the slots.
func (c *call) begin(parent context.Context) (ctx context.Context, done func(), err error) {
	release, err := c.acquireSlots()
	if err != nil {
		return nil, nil, err
	}
	ctx, c.end = context.WithCancelCause(parent)
	stop := context.AfterFunc(c.member.ctx, func() { c.end(context.Cause(c.member.ctx)) })
	return ctx, func() {
		stop()
		c.end(nil)
		release()
	}, nil
}

// RoundTrip sends a request with the caller's identity. The request's context must be the one that
// begin returned. Errors are of type *StatusError.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	transport := c.member.transport.requests
	var dog *watchdog
	if c.isUpgrade {
		transport = c.member.transport.upgrades
	}
	if c.isUpgrade || !c.isLongRunning {
		dog = newWatchdog(c.idle, func() { c.end(errIdle) })
	}
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = watchedBody{ReadCloser: req.Body, watchdog: dog}
	}
	resp, err := c.send(transport, req)
	if err != nil {
		dog.stop()
		return nil, err
	}
	dog.reset()
	if c.isUpgrade {
		dog.stop()
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
		// The body of the error response has its own timeout.
		dog = &watchdog{timer: time.AfterFunc(c.timeouts.errorBody, func() { c.end(errIdle) })}
	}
	stopClientLimit := limitClientWrites(req.Context(), c.writer)
	resp.Body = watchedBody{completeBody{resp.Body, req.Context()}, dog, func() {
		stopClientLimit()
		dog.stop()
	}}
	return resp, nil
}

// send sends a request through the transport, explains errors, and filters the response.
func (c *call) send(transport http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := c.sendAuthenticated(lateResponseFilter{transport}, req)
	if err == nil && !c.isExpected(resp, req.Header.Get("Upgrade")) {
		_ = resp.Body.Close()
		err = newInvalidUpgradeError(c.cluster.Name, strings.TrimSpace(resp.Status+" "+resp.Header.Get("Upgrade")))
	}
	if err != nil {
		return nil, explainError(req.Context(), c.cluster, c.idle, err)
	}
	return c.filterResponse(resp)
}

// isExpected reports whether the response is an error, or switches to the requested protocol if there
// is one.
func (c *call) isExpected(resp *http.Response, protocol string) bool {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return c.isUpgrade && isUpgrade(resp.Header) && strings.EqualFold(resp.Header.Get("Upgrade"), protocol)
	}
	return !c.isUpgrade || resp.StatusCode >= http.StatusBadRequest
}

func newInvalidUpgradeError(member, reason string) error {
	return fanout.NewStatusError(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable,
		"invalid upgrade response of cluster %q: %s", member, reason)
}

// lateResponseFilter rejects responses to canceled requests. Over HTTP/1.1, the closed connection can
// make the handler in the member return early, and its response then looks like an empty successful
// response.
type lateResponseFilter struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l lateResponseFilter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(req)
	if err == nil && req.Context().Err() != nil {
		_ = resp.Body.Close()
		return nil, context.Cause(req.Context())
	}
	return resp, err
}

// completeBody is a response's body. It returns an error instead of EOF if the request was canceled,
// because an incomplete list must not look like a complete list.
type completeBody struct {
	io.ReadCloser
	request context.Context //nolint:containedctx // it is that of the request
}

func (c completeBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && c.request.Err() != nil {
		err = context.Cause(c.request)
	}
	return n, err
}
