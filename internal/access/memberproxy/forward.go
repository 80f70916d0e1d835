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

	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
)

// flushInterval is how long a response of known length may be buffered. Responses of unknown
// length, such as watches, are flushed immediately.
const flushInterval = 200 * time.Millisecond

var (
	// requestInfoFactory parses requests to a member.
	requestInfoFactory = genericrequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	// isLongRunning reports whether a request may run for a long time without data.
	isLongRunning = genericfilters.BasicLongRunningRequestCheck(
		sets.NewString("watch"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))
)

// forwarder forwards one request to one member.
type forwarder struct {
	client    *memberClient
	path      string
	responder rest.Responder
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	member, upgrade := f.client.member, isUpgrade(req)
	target, err := targetURL(f.client.cluster, f.path, req.URL)
	if err != nil {
		f.responder.Error(err)
		return
	}
	release, err := f.client.acquireSlots(req, target, upgrade)
	if err != nil {
		f.responder.Error(err)
		return
	}
	defer release()
	ctx, end := withLinkedCancel(req.Context(), member.ctx)
	defer end(nil)
	if upgrade {
		f.upgrade(w, req.WithContext(ctx), target)
		return
	}
	if redirectToSlash(strings.TrimSuffix(f.path, "/")+trailingSlash(req.URL), w, req) {
		return
	}
	client := *f.client
	client.clientWriter = w
	forward(w, req.WithContext(ctx), target, client.sendPlain, f.responder)
}

// trailingSlash returns the slash at the end of a URL, if there is one.
func trailingSlash(u *url.URL) string {
	if strings.HasSuffix(u.Path, "/") {
		return "/"
	}
	return ""
}

// forward calls send to send a request to target, and copies the response to w.
func forward(w http.ResponseWriter, req *http.Request, target *url.URL, send roundTripper, responder rest.Responder) {
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = target
			r.Out.Host = target.Host
			filterRequestHeader(r.Out.Header)
			r.Out.Trailer = nil
		},
		Transport:     send,
		FlushInterval: flushInterval,
		ErrorHandler:  func(_ http.ResponseWriter, _ *http.Request, err error) { responder.Error(err) },
		// Log no error in the middle of a response, because the closed connection reports the error
		// to the client.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	proxy.ServeHTTP(w, req)
}

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// sendPlain sends a request without an upgrade. The idle timeout applies unless the request is
// long-running.
func (m *memberClient) sendPlain(req *http.Request) (*http.Response, error) {
	info := m.requestInfo(req)
	ctx, end := context.WithCancelCause(req.Context())
	var dog *watchdog
	if !isLongRunning(req, info) {
		dog = newWatchdog(m.timeouts.idle, func() { end(errIdle) })
	}
	stopClientLimit := func() {}
	done := func() {
		stopClientLimit()
		dog.stop()
		end(nil)
	}
	req = req.WithContext(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = watchedBody{ReadCloser: req.Body, watchdog: dog}
	}
	resp, err := m.send(m.member.transport.requests, req, info)
	if err != nil {
		done()
		return nil, err
	}
	dog.reset()
	stopClientLimit = limitClientWrites(ctx, m.clientWriter)
	resp.Body = watchedBody{ReadCloser: completeBody{resp.Body, ctx}, watchdog: dog, onClose: done}
	return resp, nil
}

// send sends a request with the identity of the caller, and explains errors.
func (m *memberClient) send(transport http.RoundTripper, req *http.Request, info *genericrequest.RequestInfo) (*http.Response, error) {
	resp, err := m.sendAuthenticated(lateResponseFilter{transport}, req, info)
	if err != nil {
		return nil, explainError(req.Context(), m.cluster, m.timeouts, err)
	}
	return m.filterResponse(resp)
}

// lateResponseFilter rejects responses to canceled requests. Over HTTP/1.1, the closed connection
// can make the handler in the member return early, and then its response looks like an empty
// successful response.
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

// completeBody is the body of a response. It returns an error instead of EOF if the request was
// canceled, because an incomplete list must not look like a complete list.
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

// requestInfo parses a request to the member. It returns an empty result if parsing fails.
func (m *memberClient) requestInfo(req *http.Request) *genericrequest.RequestInfo {
	info, err := requestInfoFactory.NewRequestInfo(memberRequest(m, req))
	if err != nil {
		return &genericrequest.RequestInfo{}
	}
	return info
}

// memberRequest returns a request with the path that the member sees. This path does not contain
// the path of the endpoint.
func memberRequest(w *memberClient, req *http.Request) *http.Request {
	endpoint, err := url.Parse(w.cluster.Spec.APIEndpoint)
	if err != nil {
		return req
	}
	path, _ := strings.CutPrefix(req.URL.Path, strings.TrimSuffix(endpoint.Path, "/"))
	return &http.Request{Method: req.Method, URL: &url.URL{Path: path, RawQuery: req.URL.RawQuery}}
}
