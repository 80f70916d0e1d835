package proxy

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

// flushInterval is how long an answer of known length may be held back. Answers of
// unknown length, such as watches, are passed on as they come.
const flushInterval = 200 * time.Millisecond

var (
	// requests understands what is asked of a member.
	requests = genericrequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	// lasting tells what is meant to last, and to be silent for long.
	lasting = genericfilters.BasicLongRunningRequestCheck(
		sets.NewString("watch"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))
)

// passage passes one request on to one member.
type passage struct {
	way       *way
	path      string
	responder rest.Responder
}

func (p *passage) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	member, upgrade := p.way.member, isUpgrade(req)
	target, err := location(p.way.cluster, p.path, req.URL)
	if err != nil {
		p.responder.Error(err)
		return
	}
	leave, err := p.way.enter(req, target, upgrade)
	if err != nil {
		p.responder.Error(err)
		return
	}
	defer leave()
	ctx, end := under(req.Context(), member.life)
	defer end(nil)
	if upgrade {
		p.upgrade(w, req.WithContext(ctx), target)
		return
	}
	if redirectToSlash(strings.TrimSuffix(p.path, "/")+trailing(req.URL), w, req) {
		return
	}
	way := *p.way
	way.client = w
	passOn(w, req.WithContext(ctx), target, way.plain, p.responder)
}

// trailing is the slash at the end of a URL.
func trailing(u *url.URL) string {
	if strings.HasSuffix(u.Path, "/") {
		return "/"
	}
	return ""
}

// passOn sends a request to target with send, and copies the answer.
func passOn(w http.ResponseWriter, req *http.Request, target *url.URL, send roundTripper, responder rest.Responder) {
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = target
			r.Out.Host = target.Host
			strip(r.Out.Header)
			trace(r.Out.Header, r.In)
		},
		Transport:     send,
		FlushInterval: flushInterval,
		ErrorHandler:  func(_ http.ResponseWriter, _ *http.Request, err error) { responder.Error(err) },
		// What breaks off in the middle is told by breaking off.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	proxy.ServeHTTP(w, req)
}

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// plain sends a request that is no upgrade. The member may be silent for long only
// where that is what was asked for.
func (w *way) plain(req *http.Request) (*http.Response, error) {
	info := w.info(req)
	ctx, end := context.WithCancelCause(req.Context())
	var dog *watchdog
	if !lasting(req, info) {
		dog = newWatchdog(w.limits.silence, func() { end(errSilent) })
	}
	heard := func() {}
	done := func() {
		heard()
		dog.stop()
		end(nil)
	}
	req = req.WithContext(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = watched{ReadCloser: req.Body, dog: dog}
	}
	resp, err := w.send(w.member.transport.requests, req, info)
	if err != nil {
		done()
		return nil, err
	}
	dog.alive()
	heard = cutOff(ctx, w.client)
	resp.Body = watched{ReadCloser: whole{resp.Body, ctx}, dog: dog, done: done}
	return resp, nil
}

// send sends a request in the name of the caller, and explains what fails.
func (w *way) send(transport http.RoundTripper, req *http.Request, info *genericrequest.RequestInfo) (*http.Response, error) {
	resp, err := w.identified(inTime{transport}, req, info)
	if err != nil {
		return nil, explain(req.Context(), w.cluster, w.limits, err)
	}
	return w.bounded(resp)
}

// inTime takes nothing for an answer that a member says to a request that was given
// up: over HTTP/1.1 the end of the connection can make a handler return, which reads
// like an empty success.
type inTime struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t inTime) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil && req.Context().Err() != nil {
		_ = resp.Body.Close()
		return nil, context.Cause(req.Context())
	}
	return resp, err
}

// whole is the body of an answer. Its end is no end once the request was given up,
// for the same reason: half a list must not look like a whole one.
type whole struct {
	io.ReadCloser
	request context.Context
}

func (w whole) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && w.request.Err() != nil {
		err = context.Cause(w.request)
	}
	return n, err
}

// info is what a request asks of the member; nothing is known of one that cannot be
// understood.
func (w *way) info(req *http.Request) *genericrequest.RequestInfo {
	info, err := requests.NewRequestInfo(memberRequest(w, req))
	if err != nil {
		return &genericrequest.RequestInfo{}
	}
	return info
}

// memberRequest is a request as the member sees it, whose endpoint may have a path
// of its own.
func memberRequest(w *way, req *http.Request) *http.Request {
	endpoint, err := url.Parse(w.cluster.Spec.APIEndpoint)
	if err != nil {
		return req
	}
	path, _ := strings.CutPrefix(req.URL.Path, strings.TrimSuffix(endpoint.Path, "/"))
	return &http.Request{Method: req.Method, URL: &url.URL{Path: path, RawQuery: req.URL.RawQuery}}
}
