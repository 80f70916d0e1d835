package reconnect

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeServer responds as configured and counts the attempts.
type fakeServer struct {
	mu     sync.Mutex
	err    error
	status int
	tries  int
}

func (f *fakeServer) RoundTrip(*http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	if f.err != nil {
		return nil, f.err
	}
	return &http.Response{StatusCode: f.status, Status: http.StatusText(f.status), Header: http.Header{}, Body: http.NoBody}, nil
}

func (f *fakeServer) set(status int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.err = status, err
}

func (f *fakeServer) tryCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// handshakeTimeoutError is the error of net/http for a TLS handshake that takes too long.
type handshakeTimeoutError struct{}

func (handshakeTimeoutError) Timeout() bool   { return true }
func (handshakeTimeoutError) Temporary() bool { return true }
func (handshakeTimeoutError) Error() string   { return "net/http: TLS handshake timeout" }

func request(ctx context.Context, t *testing.T, through http.RoundTripper, method, query string) (int, error) {
	t.Helper()
	return roundTrip(ctx, t, through, method, "/api"+query)
}

func requestPath(ctx context.Context, t *testing.T, through http.RoundTripper, path string) (int, error) {
	t.Helper()
	return roundTrip(ctx, t, through, http.MethodGet, path)
}

func roundTrip(ctx context.Context, t *testing.T, through http.RoundTripper, method, path string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, "https://server"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := through.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode, nil
}

func TestTransportRetries(t *testing.T) {
	tests := map[string]struct {
		method, query string
		err           error
		status        int
		options       Options
		waits         time.Duration
	}{
		"list: connection refused":             {err: errRefused, waits: 30 * time.Second},
		"watch: connection refused":            {query: "?watch=true", err: errRefused, waits: 30 * time.Second},
		"unknown host name":                    {err: &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, waits: 30 * time.Second},
		"connection reset":                     {err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}, waits: 30 * time.Second},
		"connection closed":                    {err: io.EOF, waits: 30 * time.Second},
		"connection closed within a response":  {err: fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), waits: 30 * time.Second},
		"HTTP/2 connection lost":               {err: errors.New("http2: client connection lost"), waits: 30 * time.Second},
		"TLS handshake timeout":                {err: handshakeTimeoutError{}, waits: 30 * time.Second},
		"configured limit":                     {err: errRefused, options: Options{Timeout: time.Minute}, waits: time.Minute},
		"configured limit of a watch":          {query: "?watch=1", err: errRefused, options: Options{WatchTimeout: time.Hour}, waits: time.Hour},
		"POST is not retried":                  {method: http.MethodPost, err: errRefused},
		"wrong certificate is not retried":     {err: x509.UnknownAuthorityError{}},
		"status 500 is not retried":            {status: http.StatusInternalServerError},
		"status 503 is not retried by default": {status: http.StatusServiceUnavailable},
		"status 503 is retried if enabled":     {status: http.StatusServiceUnavailable, options: Options{RetryUnavailable: true}, waits: 30 * time.Second},
		"request timeout is not retried":       {err: context.DeadlineExceeded},
		"invalid response is not retried":      {err: errors.New("gzip: invalid header")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, began := &fakeServer{status: test.status, err: test.err}, time.Now()
				status, err := request(t.Context(), t, NewTransport(server, test.options), test.method, test.query)
				if took := time.Since(began); took != test.waits {
					t.Errorf("it took %s, want %s", took, test.waits)
				}
				if status != test.status || !errors.Is(err, test.err) {
					t.Errorf("answered %d and %v, want %d and %v", status, err, test.status, test.err)
				}
				if again := server.tryCount() > 1; again != (test.waits > 0) {
					t.Errorf("tried %d times", server.tryCount())
				}
			})
		})
	}
}

func TestWaitingRequestsContinueTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, outage = 100, 10 * time.Second
		var calls []string
		server := &fakeServer{err: errRefused}
		through := NewTransport(server, Options{
			OnLost:      func(err error) { calls = append(calls, "lost: "+err.Error()) },
			OnRecovered: func(after time.Duration) { calls = append(calls, "back after "+after.String()) },
		})
		var answers sync.WaitGroup
		var latest atomic.Int64
		began := time.Now()
		for range many {
			answers.Go(func() {
				if status, err := request(t.Context(), t, through, http.MethodGet, "?watch=true"); status != http.StatusOK || err != nil {
					t.Errorf("answered %d and %v", status, err)
				}
				latest.Store(int64(time.Since(began)))
			})
		}
		<-time.After(outage - time.Millisecond)
		if tries := server.tryCount(); tries > many+int(outage/DefaultRetryInterval) {
			t.Errorf("an unavailable server was tried %d times by %d requests", tries, many)
		}
		server.set(http.StatusOK, nil)
		answers.Wait()
		if took := time.Duration(latest.Load()); took > outage+DefaultRetryInterval {
			t.Errorf("the last response came after %s, the outage took %s", took, outage)
		}
		if diff := cmp.Diff([]string{"lost: dial tcp: connection refused", "back after 10s"}, calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestCanceledRequestPassesTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{err: errRefused}
		through := NewTransport(server, Options{})
		var answers sync.WaitGroup
		for _, timeout := range []time.Duration{700 * time.Millisecond, 1100 * time.Millisecond, 20 * time.Second} {
			answers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				_, err := request(ctx, t, through, http.MethodGet, "")
				if timeout < 10*time.Second != (err != nil) {
					t.Errorf("after at most %s: %v", timeout, err)
				}
				if err != nil && !strings.Contains(err.Error(), "refused") {
					t.Errorf("the error does not contain the cause: %v", err)
				}
			})
		}
		<-time.After(5 * time.Second)
		server.set(http.StatusOK, nil)
		began := time.Now()
		answers.Wait()
		if took := time.Since(began); took > DefaultRetryInterval {
			t.Errorf("noticed after %s", took)
		}
	})
}

func TestClosedTransportStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away, ended := &fakeServer{err: errRefused}, make(chan struct{})
		through := NewTransport(away, Options{Timeout: time.Hour, Closed: ended})
		began := time.Now()
		var asking sync.WaitGroup
		for range 3 {
			asking.Go(func() {
				if _, err := request(context.WithoutCancel(t.Context()), t, through, http.MethodGet, ""); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("error %v, want the last one of the server", err)
				}
			})
		}
		synctest.Wait()
		close(ended)
		asking.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("requests waited %s after the close", took)
		}
	})
}

func TestSlowAnswerAfterRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int32
		slow := roundTripper(func(request *http.Request) (*http.Response, error) {
			if tries.Add(1) == 1 {
				return nil, errRefused
			}
			select {
			case <-request.Context().Done():
				return nil, request.Context().Err()
			case <-time.After(time.Minute):
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}
		})
		if status, err := request(t.Context(), t, NewTransport(slow, Options{}), http.MethodGet, ""); status != http.StatusOK || err != nil {
			t.Errorf("answered %d and %v", status, err)
		}
	})
}

// The server of one API group may be unavailable for a long time, while thousands of requests for
// other API groups succeed.
func TestOutagesByAPIGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const away = 10 * time.Second
		var tries atomic.Int32
		began := time.Now()
		through := NewTransport(roundTripper(func(request *http.Request) (*http.Response, error) {
			if !strings.HasPrefix(request.URL.Path, "/apis/cluster.karmada.io/") {
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}
			tries.Add(1)
			if time.Since(began) < away {
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}), Options{RetryUnavailable: true})
		var waits sync.WaitGroup
		waits.Go(func() {
			if status, err := requestPath(t.Context(), t, through, "/apis/cluster.karmada.io/v1alpha1/clusters"); status != http.StatusOK || err != nil {
				t.Errorf("answered %d and %v", status, err)
			}
			if took := time.Since(began); took > away+DefaultRetryInterval {
				t.Errorf("noticed after %s that the server of the group is back, after an outage of %s", took, away)
			}
		})
		for time.Since(began) < away {
			if status, err := requestPath(t.Context(), t, through, "/apis/apps/v1/deployments"); status != http.StatusOK || err != nil {
				t.Errorf("another group answered %d and %v", status, err)
			}
			<-time.After(10 * time.Millisecond)
		}
		waits.Wait()
		if most := 2 + int32(away/DefaultRetryInterval); tries.Load() > most {
			t.Errorf("an unavailable server was tried %d times, want %d at most", tries.Load(), most)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// A server counts as unavailable if it accepts connections but sends nothing, not even during the
// handshake.
func TestHangingHandshakeIsRetried(t *testing.T) {
	served := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	hangs := &hangingOnce{Listener: served.Listener}
	served.Listener = hangs
	served.StartTLS()
	t.Cleanup(served.Close)
	base := served.Client().Transport.(*http.Transport)
	base.TLSHandshakeTimeout = 200 * time.Millisecond
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := NewTransport(base, Options{RetryInterval: time.Millisecond}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	_ = hangs.kept.Close()
	// On a busy machine, another handshake may also time out.
	if hangs.taken.Load() < 2 || response.StatusCode != http.StatusOK {
		t.Errorf("%d connections and status %d, want one that hangs and another", hangs.taken.Load(), response.StatusCode)
	}
}

// hangingOnce does not serve its first connection.
type hangingOnce struct {
	net.Listener
	taken atomic.Int32
	kept  net.Conn
}

func (h *hangingOnce) Accept() (net.Conn, error) {
	for {
		accepted, err := h.Listener.Accept()
		if err != nil || h.taken.Add(1) > 1 {
			return accepted, err
		}
		h.kept = accepted
	}
}
