// Package reconnect retries requests that did not reach their server, so that clients notice quickly
// that the server is available again.
//
// Clients with a watch wait longer after each failed attempt, so they can notice half a minute too
// late that a server is available again. With this package the request itself waits and retries.
// All requests that wait for one server continue at once when one of them gets a response.
//
// Only requests that change nothing are retried, and only while no byte of a response has arrived.
// Only one of the requests that wait for a server retries at a time.
package reconnect

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// DefaultRetryInterval is the time between two attempts.
	DefaultRetryInterval = 500 * time.Millisecond
	// DefaultTimeout is how long a request waits until its server is available.
	DefaultTimeout = 30 * time.Second
)

// Options configure which requests wait, and for how long.
type Options struct {
	// RetryInterval is the time between two attempts. The default is DefaultRetryInterval.
	RetryInterval time.Duration
	// Timeout is how long a request waits in total. The wait always ends with the context of the
	// request. The default is DefaultTimeout.
	Timeout time.Duration
	// WatchTimeout is how long a watch waits in total. The default is Timeout. With a negative
	// value a watch waits until its context ends.
	WatchTimeout time.Duration
	// Closed ends all waiting when it is closed, because the server is no longer needed. It is for
	// callers whose context never ends. A nil channel is never closed.
	Closed <-chan struct{}
	// RetryUnavailable treats the responses 502 and 503 as outages, because a proxy or an
	// aggregator sends them while the server behind it is unavailable. Outages of different API
	// groups are independent.
	RetryUnavailable bool
	// OnLost is called once at the start of an outage, and OnRecovered once at the end. Both must
	// return quickly and may be nil.
	OnLost      func(err error)
	OnRecovered func(after time.Duration)
}

// NewTransport returns a transport that retries read-only requests until they get a response.
func NewTransport(next http.RoundTripper, o Options) http.RoundTripper {
	if o.RetryInterval <= 0 {
		o.RetryInterval = DefaultRetryInterval
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.WatchTimeout == 0 {
		o.WatchTimeout = o.Timeout
	}
	return &retryingTransport{next: next, options: o}
}

type retryingTransport struct {
	next    http.RoundTripper
	options Options
	// unreachable tracks failed connections. unavailable tracks responses that report an
	// unavailable server, by API group.
	unreachable outageTracker
	unavailable groupOutages
}

// WrappedRoundTripper implements net.RoundTripperWrapper, so that callers can close idle
// connections.
func (r *retryingTransport) WrappedRoundTripper() http.RoundTripper { return r.next }

// RoundTrip implements http.RoundTripper.
func (r *retryingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	away := r.outagesFor(request, response, err)
	if away == nil || !IsRetryable(request) {
		return response, err
	}
	ctx, cancel := r.withTimeout(request)
	defer cancel()
	for away != nil {
		lost := r.beginOutage(away, response, err)
		if !lost.await(ctx, r.options.Closed, r.options.RetryInterval) {
			return response, err
		}
		closeBody(response)
		// The retry uses the context of the request, because the limit applies only to waiting, and
		// a response may take longer.
		response, err = r.next.RoundTrip(request)
		lost.releaseTurn()
		away = r.outagesFor(request, response, err)
	}
	return response, err
}

// withTimeout returns the context that limits how long a request waits.
func (r *retryingTransport) withTimeout(request *http.Request) (context.Context, context.CancelFunc) {
	limit := r.options.Timeout
	if IsWatch(request) {
		limit = r.options.WatchTimeout
	}
	if limit < 0 {
		return context.WithCancel(request.Context())
	}
	return context.WithTimeout(request.Context(), limit)
}

// outagesFor ends the outages that a response disproves. It returns the tracker of the outage if
// the server did not respond, or nil for a response.
func (r *retryingTransport) outagesFor(request *http.Request, response *http.Response, err error) *outageTracker {
	switch {
	case err != nil && isConnectionFailure(err):
		return &r.unreachable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	r.endOutage(&r.unreachable)
	if err != nil || !r.options.RetryUnavailable {
		return nil
	}
	group := r.unavailable.of(request.URL.Path)
	if response.Header.Get("Retry-After") == "" &&
		(response.StatusCode == http.StatusBadGateway || response.StatusCode == http.StatusServiceUnavailable) {
		return group
	}
	r.endOutage(group)
	return nil
}

func (r *retryingTransport) beginOutage(of *outageTracker, response *http.Response, err error) *outage {
	lost, first := of.getOrBegin(time.Now())
	if first && r.options.OnLost != nil {
		if err == nil {
			err = errors.New("the server responded with " + response.Status)
		}
		r.options.OnLost(err)
	}
	return lost
}

func (r *retryingTransport) endOutage(of *outageTracker) {
	if took, was := of.end(time.Now()); was && r.options.OnRecovered != nil {
		r.options.OnRecovered(took)
	}
}

// isConnectionFailure reports whether no connection was established, or the connection ended before
// data arrived. An error of a server that was reached, such as a wrong certificate, is not a
// connection failure.
func isConnectionFailure(err error) bool {
	var dialling *net.OpError
	if errors.As(err, &dialling) && dialling.Op == "dial" {
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) || isConnectionTimeout(err)
}

// isConnectionTimeout reports whether the error is a timeout of the connection, such as that of the
// TLS handshake, and not a timeout of the request.
func isConnectionTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}

// IsRetryable reports whether a request can be sent again: it is read-only and has no body.
func IsRetryable(request *http.Request) bool {
	return (request.Method == http.MethodGet || request.Method == http.MethodHead) && (request.Body == nil || request.Body == http.NoBody)
}

// IsWatch reports whether a request is a watch, which ends when its caller ends it.
func IsWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// closeBody releases the connection of a response that is not used.
func closeBody(response *http.Response) {
	if response != nil && response.Body != nil {
		_ = response.Body.Close()
	}
}
