package memberproxy

import (
	"context"
	"io"
	"net/http"
	"time"
)

// timeouts limit the phases of a request.
type timeouts struct {
	// idle limits the time in which no data passes between client and member.
	idle time.Duration
	// errorBody limits the time in which a member sends the body of an error response to an upgrade.
	errorBody time.Duration
	// halfClosed limits the idle time of a stream's direction after the other direction has ended.
	halfClosed time.Duration
	// lookup applies to requests to all clusters. It limits each cluster's idle time, and the time in
	// which a cluster reports whether it has an object.
	lookup time.Duration
	// list limits the time in which each cluster returns its list if all clusters are requested.
	list time.Duration
	// clientRead limits the time in which a client reads the list from all clusters.
	clientRead time.Duration
}

// defaultTimeouts are used unless a test sets others. idle is longer than the minute after which a
// Kubernetes API server ends its own requests with a Status.
var defaultTimeouts = timeouts{
	idle: 65 * time.Second, errorBody: 10 * time.Second, halfClosed: time.Minute,
	lookup: 10 * time.Second, list: 30 * time.Second, clientRead: 2 * time.Minute,
}

// watchdog calls a function if it is not reset for a time. A nil watchdog does nothing.
type watchdog struct {
	timer *time.Timer
	// limit is the maximum time without a reset, or 0 if resets have no effect.
	limit time.Duration
}

func newWatchdog(limit time.Duration, end func()) *watchdog {
	return &watchdog{timer: time.AfterFunc(limit, end), limit: limit}
}

// reset restarts the time limit, unless resets have no effect.
func (w *watchdog) reset() {
	if w != nil && w.limit > 0 {
		w.timer.Reset(w.limit)
	}
}

func (w *watchdog) stop() {
	if w != nil {
		w.timer.Stop()
	}
}

// watchedBody is a body that resets a watchdog whenever it is read.
type watchedBody struct {
	io.ReadCloser
	watchdog *watchdog
	onClose  func()
}

func (w watchedBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.watchdog.reset()
	}
	return n, err
}

func (w watchedBody) Close() error {
	err := w.ReadCloser.Close()
	if w.onClose != nil {
		w.onClose()
	}
	return err
}

// finalWriteTimeout is how long a client may take to read the rest of a response.
const finalWriteTimeout = time.Second

// limitClientWrites sets a write deadline for the client when the context ends, because a client that
// does not read would block the request forever. It must be called after the member's response has
// arrived, so that earlier errors can still be sent. stop removes the deadline unless the context has
// ended, so that the connection can be reused.
func limitClientWrites(ctx context.Context, client http.ResponseWriter) (stop func()) {
	if client == nil {
		return func() {}
	}
	stopped := context.AfterFunc(ctx, func() {
		// If the connection does not support deadlines, the write blocks until the client reads.
		_ = http.NewResponseController(client).SetWriteDeadline(time.Now().Add(finalWriteTimeout))
	})
	return func() { stopped() }
}
