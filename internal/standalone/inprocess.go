package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/klog/v2"
)

// remoteAddress is the client address that servers receive with each request.
const remoteAddress = "127.0.0.1:0"

// InProcessTransport is an http.RoundTripper that calls Handler instead of a server.
//
// A network connection would encrypt, frame and copy every byte twice, which often costs more than the
// request itself. The transport behaves like a network connection: it streams responses, and if the client
// closes the body or cancels the context, the server's request ends too. A panic of the handler ends only
// its own response. Protocol upgrades are not supported.
type InProcessTransport struct {
	Handler http.Handler
}

// RoundTrip implements http.RoundTripper.
func (t *InProcessTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	reader, writer := io.Pipe()
	w := &responseWriter{header: http.Header{}, body: writer, ctx: ctx, started: make(chan struct{})}
	serverCtx := newServerContext(ctx)
	go serveRequest(serverCtx, t.Handler, w, newServerRequest(serverCtx, request))
	select {
	case <-w.started:
	case <-ctx.Done():
	}
	if err := context.Cause(ctx); err != nil {
		cancel()
		_ = reader.CloseWithError(err)
		return nil, err
	}
	if w.failure != nil {
		cancel()
		return nil, w.failure
	}
	return w.response(request, &responseBody{PipeReader: reader, cancel: cancel}), nil
}

// newServerContext returns the server's context for a request. It ends with the client's context, but does
// not inherit its values. If the client itself serves a request to another server, that request's audit
// event, user and trace must not apply here.
func newServerContext(client context.Context) context.Context {
	server, cancel := context.WithCancel(context.Background())
	context.AfterFunc(client, cancel)
	return server
}

// newServerRequest returns the request as a server receives it.
func newServerRequest(ctx context.Context, request *http.Request) *http.Request {
	inbound := request.Clone(ctx)
	inbound.RequestURI = request.URL.RequestURI()
	inbound.RemoteAddr = remoteAddress
	inbound.Proto, inbound.ProtoMajor, inbound.ProtoMinor = "HTTP/2.0", 2, 0
	if inbound.Host == "" {
		inbound.Host = request.URL.Host
	}
	inbound.URL.Scheme, inbound.URL.Host = "", ""
	if inbound.Body == nil {
		inbound.Body = http.NoBody
	}
	return inbound
}

var errPanic = errors.New("the server panicked")

// serveRequest handles one request and always finishes the response, also after a panic.
func serveRequest(ctx context.Context, handler http.Handler, w *responseWriter, inbound *http.Request) {
	defer func() { _ = inbound.Body.Close() }()
	defer func() {
		switch r := recover(); r {
		case nil:
			w.finish(nil)
		case http.ErrAbortHandler:
			w.finish(io.ErrUnexpectedEOF)
		default:
			err := fmt.Errorf("%s %s: %w: %v", inbound.Method, inbound.URL.Path, errPanic, r)
			klog.FromContext(ctx).Error(err, "Recovered")
			w.finish(err)
		}
	}()
	handler.ServeHTTP(w, inbound)
}

// responseWriter is the server side of a response.
type responseWriter struct {
	header http.Header
	body   *io.PipeWriter
	ctx    context.Context //nolint:containedctx // the context of the request of this response

	startOnce sync.Once
	started   chan struct{}
	// The next fields are written before started is closed, and read only after that.
	status     int
	sentHeader http.Header
	failure    error
}

// Header implements http.ResponseWriter.
func (r *responseWriter) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *responseWriter) WriteHeader(status int) {
	r.startOnce.Do(func() {
		r.status, r.sentHeader = status, r.header.Clone()
		close(r.started)
	})
}

// Write implements http.ResponseWriter. It returns when the client has read all of the data,
// or with an error when the client has closed the body.
func (r *responseWriter) Write(data []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(data) // servers compare this error
}

// Flush implements http.Flusher. Only the header is buffered.
func (r *responseWriter) Flush() { r.WriteHeader(http.StatusOK) }

// CloseNotify implements http.CloseNotifier, which API servers require of every http.Flusher.
func (r *responseWriter) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	context.AfterFunc(r.ctx, func() { closed <- true })
	return closed
}

// finish ends the response. If the handler fails before the response started, the request of the
// client returns the error. If the handler fails later, reading the body returns the error.
func (r *responseWriter) finish(failure error) {
	r.startOnce.Do(func() {
		r.status, r.sentHeader, r.failure = http.StatusOK, r.header.Clone(), failure
		close(r.started)
	})
	_ = r.body.CloseWithError(failure)
}

// response returns the client side of the response.
func (r *responseWriter) response(request *http.Request, body io.ReadCloser) *http.Response {
	length, err := strconv.ParseInt(r.sentHeader.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", r.status, http.StatusText(r.status)), StatusCode: r.status,
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: r.sentHeader, Body: body, ContentLength: length, Request: request,
	}
}

// responseBody cancels the request on the server when the client closes the body.
type responseBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (r *responseBody) Close() error {
	r.cancel()
	return r.PipeReader.Close() // it never fails
}
