// Package reconnect answers "how is a server noticed that is back?": by trying
// again, inside of a request that found nobody.
//
// Clients that watch sleep after a failed try, for longer with each one, so that
// they would notice half a minute late that a server is back. Here the request
// itself waits, and everything that waits for one server goes on at once when one
// of them gets an answer.
//
// Only what changes nothing is tried again, and only as long as no byte of an
// answer has come. However much waits for a server, it is tried by one at a time.
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
	// DefaultPause is how long a server that does not answer is left alone.
	DefaultPause = 500 * time.Millisecond
	// DefaultLimit is how long a request waits for its server.
	DefaultLimit = 30 * time.Second
)

// Options say how long and for what requests wait.
type Options struct {
	// Pause lies between two tries. Default DefaultPause.
	Pause time.Duration
	// Limit is how long a request waits in all; it ends with its context in any
	// case. Default DefaultLimit.
	Limit time.Duration
	// WatchLimit is the same for a watch, which has nothing better to do than to
	// wait. Default is Limit; a negative one means as long as its context.
	WatchLimit time.Duration
	// Ended, once it is closed, ends all waiting: nobody wants answers of this server
	// any more. Who asks may have no context to end. Nil never is.
	Ended <-chan struct{}
	// Unavailable takes the answers 502 and 503 for none: a proxy or an aggregator
	// gives them while the server behind it is away. Who waits for one API group is
	// not disturbed by the answers of others.
	Unavailable bool
	// Lost is told why a server does not answer, once, and Back that it does again.
	// They must return quickly; nil tells nobody.
	Lost func(err error)
	Back func(after time.Duration)
}

// Transport tries requests that only read again, until they are answered.
func Transport(next http.RoundTripper, o Options) http.RoundTripper {
	if o.Pause <= 0 {
		o.Pause = DefaultPause
	}
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.WatchLimit == 0 {
		o.WatchLimit = o.Limit
	}
	return &retryingTransport{next: next, options: o}
}

type retryingTransport struct {
	next    http.RoundTripper
	options Options
	// unreachable are the times in which no connection comes about, and unavailable,
	// by API group, those in which the server of the group is away.
	unreachable   outageTracker
	unavailable groupOutages
}

// WrappedRoundTripper implements net.RoundTripperWrapper: whoever closes idle
// connections finds them.
func (t *retryingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *retryingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	away := t.outagesFor(request, response, err)
	if away == nil || !OnlyReads(request) {
		return response, err
	}
	ctx, cancel := t.withTimeout(request)
	defer cancel()
	for away != nil {
		lost := t.beginOutage(away, response, err)
		if !lost.await(ctx, t.options.Ended, t.options.Pause) {
			return response, err
		}
		closeBody(response)
		// With the request's own context: the limit is for waiting, and what is
		// answered may take its time.
		response, err = t.next.RoundTrip(request)
		lost.releaseTurn()
		away = t.outagesFor(request, response, err)
	}
	return response, err
}

// withTimeout bounds how long a request waits.
func (t *retryingTransport) withTimeout(request *http.Request) (context.Context, context.CancelFunc) {
	limit := t.options.Limit
	if Watches(request) {
		limit = t.options.WatchLimit
	}
	if limit < 0 {
		return context.WithCancel(request.Context())
	}
	return context.WithTimeout(request.Context(), limit)
}

// outagesFor ends the outages that an answer disproves, and returns those that the lack of
// one belongs to; nil is an answer.
func (t *retryingTransport) outagesFor(request *http.Request, response *http.Response, err error) *outageTracker {
	switch {
	case err != nil && isConnectionFailure(err):
		return &t.unreachable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	t.endOutage(&t.unreachable)
	if err != nil || !t.options.Unavailable {
		return nil
	}
	group := t.unavailable.of(request.URL.Path)
	if response.Header.Get("Retry-After") == "" &&
		(response.StatusCode == http.StatusBadGateway || response.StatusCode == http.StatusServiceUnavailable) {
		return group
	}
	t.endOutage(group)
	return nil
}

func (t *retryingTransport) beginOutage(of *outageTracker, response *http.Response, err error) *outage {
	lost, first := of.getOrBegin(time.Now())
	if first && t.options.Lost != nil {
		if err == nil {
			err = errors.New("it answers " + response.Status)
		}
		t.options.Lost(err)
	}
	return lost
}

func (t *retryingTransport) endOutage(of *outageTracker) {
	if took, was := of.end(time.Now()); was && t.options.Back != nil {
		t.options.Back(took)
	}
}

// isConnectionFailure tells that a connection did not come about, or ended before anything
// came back. What a server says that can be reached, such as that it is not the
// one it should be, is an answer.
func isConnectionFailure(err error) bool {
	var dialling *net.OpError
	if errors.As(err, &dialling) && dialling.Op == "dial" {
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) || isConnectionTimeout(err)
}

// isConnectionTimeout tells that a limit of the connection was reached, such as that of its
// TLS handshake, and not one of the request.
func isConnectionTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}

// OnlyReads tells that a request can be sent again: it changes nothing and has no body.
func OnlyReads(request *http.Request) bool {
	return (request.Method == http.MethodGet || request.Method == http.MethodHead) && (request.Body == nil || request.Body == http.NoBody)
}

// Watches tells that a request is a watch, which ends when its caller wants.
func Watches(request *http.Request) bool {
	asked := request.URL.Query().Get("watch")
	return asked == "true" || asked == "1"
}

// closeBody gives back the connection of an answer that nobody wants.
func closeBody(response *http.Response) {
	if response != nil && response.Body != nil {
		_ = response.Body.Close()
	}
}
