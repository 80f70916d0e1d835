package proxy

import (
	"context"
	"io"
	"net/http"
	"time"
)

// limits are how long a request may take that is not meant to last.
type limits struct {
	// silence is how long nothing may pass between client and member.
	silence time.Duration
	// refusal is how long a member may take to say why it refuses an upgrade.
	refusal time.Duration
	// linger is how long one direction of a stream may be silent once the other
	// has ended.
	linger time.Duration
	// lookup is how long each of all clusters may be silent, and how long it may take
	// to say whether it has an object.
	lookup time.Duration
	// answer is how long each of all clusters may take for its list.
	answer time.Duration
	// delivery is how long a client may take to read the list of all clusters.
	delivery time.Duration
}

// A Kubernetes API server gives up a request of its own after a minute, and says so.
var standardLimits = limits{
	silence: 65 * time.Second, refusal: 10 * time.Second, linger: time.Minute,
	lookup: 10 * time.Second, answer: 30 * time.Second, delivery: 2 * time.Minute,
}

// watchdog ends something when nothing has happened for a while.
type watchdog struct {
	timer *time.Timer
	limit time.Duration
}

func newWatchdog(limit time.Duration, end func()) *watchdog {
	return &watchdog{timer: time.AfterFunc(limit, end), limit: limit}
}

// alive tells that something happens.
func (d *watchdog) alive() {
	if d != nil {
		d.timer.Reset(d.limit)
	}
}

func (d *watchdog) stop() {
	if d != nil {
		d.timer.Stop()
	}
}

// watched is a body whose progress a watchdog sees.
type watched struct {
	io.ReadCloser
	dog  *watchdog
	done func()
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.dog.alive()
	}
	return n, err
}

func (w watched) Close() error {
	err := w.ReadCloser.Close()
	if w.done != nil {
		w.done()
	}
	return err
}

// lastWords is how long a client has to read what was said before the end.
const lastWords = time.Second

// cutOff ends what is written to a client soon after the context ends: one that does
// not read would hold on to the request for ever. It begins with the answer of the
// member, so that whatever went wrong before can still be told. The result ends the
// watch over the client, for the connection to be used again; it cannot be once the
// context has ended.
func cutOff(ctx context.Context, client http.ResponseWriter) (stop func()) {
	if client == nil {
		return func() {}
	}
	stopped := context.AfterFunc(ctx, func() {
		// Where no deadline can be set, the client decides.
		_ = http.NewResponseController(client).SetWriteDeadline(time.Now().Add(lastWords))
	})
	return func() { stopped() }
}

// under returns a context that also ends with another one, for the same cause.
func under(ctx, other context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func(cause error) {
		stop()
		cancel(cause)
	}
}
