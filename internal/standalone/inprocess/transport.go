// Package inprocess answers "how does a client talk to a server that lives in the
// same process?": by calling its handler. A connection would encrypt, frame and
// copy every byte twice over, which is more work than many a request.
//
// A client cannot tell the difference: answers stream, a closed body or a
// cancelled context ends the request on the server's side too, and a handler that
// panics breaks off its answer and nothing else. Protocol upgrades are not
// supported.
package inprocess

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

// remoteAddress is where requests seem to come from: servers log and judge it.
const remoteAddress = "127.0.0.1:0"

// Transport is an http.RoundTripper whose server is a handler. Its zero value with
// a Handler is ready to use.
type Transport struct {
	Handler http.Handler
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	reader, writer := io.Pipe()
	w := &responseWriter{header: http.Header{}, body: writer, ctx: ctx, started: make(chan struct{})}
	inbound := inboundFrom(ctx, request)
	go serve(t.Handler, w, inbound)
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

// inboundFrom is a request as a server sees it.
func inboundFrom(ctx context.Context, request *http.Request) *http.Request {
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

// serve answers one request and ends it, whatever the handler does.
func serve(handler http.Handler, w *responseWriter, inbound *http.Request) {
	defer func() { _ = inbound.Body.Close() }()
	defer func() {
		switch r := recover(); r {
		case nil:
			w.finish(nil)
		case http.ErrAbortHandler:
			w.finish(io.ErrUnexpectedEOF)
		default:
			err := fmt.Errorf("%s %s: %w: %v", inbound.Method, inbound.URL.Path, errPanic, r)
			klog.FromContext(inbound.Context()).Error(err, "Recovered")
			w.finish(err)
		}
	}()
	handler.ServeHTTP(w, inbound)
}

// responseWriter is the server's side of an answer.
type responseWriter struct {
	header http.Header
	body   *io.PipeWriter
	ctx    context.Context //nolint:containedctx // it is that of the one request that this answers

	once    sync.Once
	started chan struct{}
	// What is below is written before started is closed, and read after.
	status  int
	sent    http.Header
	failure error
}

// Header implements http.ResponseWriter.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *responseWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.started)
	})
}

// Write implements http.ResponseWriter. It returns when the client has read
// everything, or an error when it has gone.
func (w *responseWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data) //nolint:wrapcheck // servers look at this error
}

// Flush implements http.Flusher: nothing is held back but the header.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// CloseNotify implements http.CloseNotifier, which API servers demand of whoever
// can flush.
func (w *responseWriter) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { gone <- true })
	return gone
}

// finish ends the answer: before it began a failure is that of the request, later
// it breaks off the body.
func (w *responseWriter) finish(failure error) {
	w.once.Do(func() {
		w.status, w.sent, w.failure = http.StatusOK, w.header.Clone(), failure
		close(w.started)
	})
	_ = w.body.CloseWithError(failure)
}

// response is the client's side of the answer.
func (w *responseWriter) response(request *http.Request, body io.ReadCloser) *http.Response {
	length, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: w.sent, Body: body, ContentLength: length, Request: request,
	}
}

// responseBody ends the request on the server's side when the client has enough.
type responseBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *responseBody) Close() error {
	b.cancel()
	return b.PipeReader.Close() //nolint:wrapcheck // it never fails
}
