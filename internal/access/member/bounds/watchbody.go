package bounds

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// errWatchTooLong is the cause with which a watch is canceled after its maximum duration.
var errWatchTooLong = errors.New("the watch lasted too long")

// limitWatchBody returns a body that limits each event of a watch. ctx is the context of the response, which
// cancel ends.
//
//nolint:revive // the context belongs to the response
func (t *transport) limitWatchBody(request *http.Request, response *http.Response, ctx context.Context,
	cancel context.CancelFunc) io.ReadCloser {
	counter := bodyMeter{
		ReadCloser: response.Body, subject: request.URL, record: t.hits.Record,
		bytesBound: EventBytes, bytesAllowed: t.limits.EventBytes, valuesAllowed: t.limits.JSONValues,
	}
	stream := watchBody{bodyMeter: &counter, ctx: ctx, cancel: cancel, hits: t.hits}
	if isProtobuf(response) {
		return &protobufWatchBody{watchBody: stream}
	}
	return &jsonWatchBody{watchBody: stream}
}

// watchBody is the body of a watch with a maximum duration.
type watchBody struct {
	*bodyMeter
	ctx    context.Context //nolint:containedctx // it is that of the request
	cancel context.CancelFunc
	hits   *HitTracker
}

// readBody reads from the member. If the watch was ended after its maximum duration, it records an
// exceeded limit.
func (w *watchBody) readBody(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.ReadCloser.Read(p)
	if err != nil && errors.Is(context.Cause(w.ctx), errWatchTooLong) {
		w.err = w.hits.Record(ExceededError{
			Bound: WatchTime, Subject: subjectOf(w.subject), Detail: "the watch did not end after the requested timeout",
		})
		// The server should have ended the watch by now, so the end of the watch is normal and not
		// a failure.
		return n, io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (w *watchBody) Close() error {
	defer w.cancel()
	return w.ReadCloser.Close()
}

// jsonWatchBody is the body of a watch in JSON. It is a sequence of objects, and each object is an
// event.
type jsonWatchBody struct{ watchBody }

// Read implements io.Reader.
func (j *jsonWatchBody) Read(p []byte) (int, error) {
	n, err := j.readBody(p)
	for rest := p[:n]; len(rest) > 0; {
		counted, ended, exceeded := j.count(rest)
		if exceeded != nil {
			j.err = exceeded
			return 0, exceeded
		}
		if ended {
			j.reset()
		}
		rest = rest[counted:]
	}
	return n, err
}

// protobufWatchBody is the body of a watch in protobuf. Each event follows a prefix of 4 bytes that
// contains the length of the event.
type protobufWatchBody struct {
	watchBody
	lengthPrefix [4]byte
	// prefixRead is the number of bytes of the prefix that were read. eventLeft is the number of
	// bytes of the event that were not yet read.
	prefixRead int
	eventLeft  int64
}

// Read implements io.Reader.
func (f *protobufWatchBody) Read(p []byte) (int, error) {
	n, err := f.readBody(p)
	for rest := p[:n]; len(rest) > 0; {
		if f.eventLeft > 0 {
			taken := min(f.eventLeft, int64(len(rest)))
			f.eventLeft -= taken
			rest = rest[taken:]
			continue
		}
		f.lengthPrefix[f.prefixRead] = rest[0]
		rest = rest[1:]
		if f.prefixRead++; f.prefixRead < len(f.lengthPrefix) {
			continue
		}
		f.prefixRead, f.eventLeft = 0, int64(binary.BigEndian.Uint32(f.lengthPrefix[:]))
		if f.eventLeft > f.bytesAllowed {
			f.err = f.record(ExceededError{
				Bound: EventBytes, Subject: subjectOf(f.subject),
				Detail: fmt.Sprintf("an event is %d bytes long, %d are allowed", f.eventLeft, f.bytesAllowed),
			})
			return 0, f.err
		}
	}
	return n, err
}
