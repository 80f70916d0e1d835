package standalone

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newRequest(t *testing.T, ctx context.Context, method, body string) *http.Request { //nolint:revive // t comes first in tests
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	created, err := http.NewRequestWithContext(ctx, method, "https://karmada:5443/apis/x?watch=true", reader)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func TestRoundTripPassesRequestToHandler(t *testing.T) {
	type seen struct{ Method, URI, Scheme, Host, Body, Token, From string }
	var got seen
	transport := &InProcessTransport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = seen{r.Method, r.RequestURI, r.URL.Scheme, r.Host, string(body), r.Header.Get("Authorization"), r.RemoteAddr}
		r.Header.Del("Authorization") // as authentication does
		w.WriteHeader(http.StatusCreated)
	})}
	sent := newRequest(t, t.Context(), http.MethodPost, "content")
	sent.Header.Set("Authorization", "Bearer secret")
	response, err := transport.RoundTrip(sent)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	want := seen{http.MethodPost, "/apis/x?watch=true", "", "karmada:5443", "content", "Bearer secret", remoteAddress}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if response.StatusCode != http.StatusCreated || response.Status != "201 Created" {
		t.Errorf("status is %q, want 201 Created", response.Status)
	}
	if sent.Header.Get("Authorization") == "" {
		t.Error("the handler changed the client's request")
	}
}

// TestServerDoesNotSeeContextValues covers a server that calls another server within a request. If
// both servers write an audit log, the values of both requests would be confused.
func TestServerDoesNotSeeContextValues(t *testing.T) {
	type key struct{}
	ended := make(chan struct{})
	transport := &InProcessTransport{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if value := r.Context().Value(key{}); value != nil {
			t.Errorf("the server sees the value %v of the client", value)
		}
		<-r.Context().Done()
		close(ended)
	})}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "client"))
	cancel()
	response, err := transport.RoundTrip(newRequest(t, ctx, http.MethodGet, ""))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if err == nil {
		_ = response.Body.Close()
	}
	<-ended
}

func TestRoundTripReturnsResponse(t *testing.T) {
	transport := &InProcessTransport{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "11")
		_, _ = io.WriteString(w, "hello ")
		w.Header().Set("Too-Late", "yes")
		_, _ = io.WriteString(w, "world")
	})}
	response, err := transport.RoundTrip(newRequest(t, t.Context(), http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "hello world" {
		t.Errorf("body is %q, %v, want %q", body, err, "hello world")
	}
	if response.ContentLength != 11 || response.Header.Get("Too-Late") != "" || response.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("length %d and header %v, want 11 and the headers that were set before the body", response.ContentLength, response.Header)
	}
}

func TestResponseStreamsUntilBodyIsClosed(t *testing.T) {
	ended := make(chan error, 1)
	transport := &InProcessTransport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flusher, ok := w.(http.Flusher)
		if !ok {
			t.Error("the response writer is not an http.Flusher")
			return
		}
		gone := w.(http.CloseNotifier).CloseNotify() //nolint:staticcheck // API servers require it
		flusher.Flush()
		_, _ = io.WriteString(w, "first")
		<-r.Context().Done()
		<-gone
		_, err := io.WriteString(w, "second")
		ended <- err
	})}
	response, err := transport.RoundTrip(newRequest(t, t.Context(), http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 5)
	if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "first" {
		t.Fatalf("the first chunk is %q, %v", first, err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing after the client closed the body gives %v, want %v", err, io.ErrClosedPipe)
	}
}

func TestCancelledRequestReturnsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	transport := &InProcessTransport{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(over)
		cancel()
		<-r.Context().Done()
	})}
	response, err := transport.RoundTrip(newRequest(t, ctx, http.MethodGet, ""))
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
	<-over
}

func TestPanicOfHandlerEndsRequest(t *testing.T) {
	tests := map[string]struct {
		handler     http.HandlerFunc
		wantRequest error
		wantBody    error
	}{
		"before the response": {
			handler:     func(http.ResponseWriter, *http.Request) { panic("on purpose") },
			wantRequest: errPanic,
		},
		"after the header": {
			handler:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK); panic("on purpose") },
			wantBody: errPanic,
		},
		"with ErrAbortHandler after the header": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusOK)
				panic(http.ErrAbortHandler)
			},
			wantBody: io.ErrUnexpectedEOF,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response, err := (&InProcessTransport{Handler: test.handler}).RoundTrip(newRequest(t, t.Context(), http.MethodGet, ""))
			if !errors.Is(err, test.wantRequest) {
				t.Fatalf("error is %v, want %v", err, test.wantRequest)
			}
			if err != nil {
				return
			}
			defer func() { _ = response.Body.Close() }()
			if _, err := io.ReadAll(response.Body); !errors.Is(err, test.wantBody) {
				t.Errorf("reading gives %v, want %v", err, test.wantBody)
			}
		})
	}
}
