package bounds

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// errWatchTime ends a watch that lasted too long.
var errWatchTime = errors.New("the watch lasted too long")

// events bounds the body of a watch event by event.
func (t *transport) events(request *http.Request, response *http.Response, ctx context.Context, cancel context.CancelFunc) io.ReadCloser { //nolint:revive // the context is that of the answer
	counted := meter{
		ReadCloser: response.Body, subject: request.URL, record: t.ledger.Record,
		size: EventBytes, bytesAllowed: t.limits.EventBytes, valuesAllowed: t.limits.Values,
	}
	stream := stream{meter: &counted, ctx: ctx, cancel: cancel, ledger: t.ledger}
	if isProtobuf(response) {
		return &frames{stream: stream}
	}
	return &lines{stream: stream}
}

// stream is the body of a watch, whose time ends.
type stream struct {
	*meter
	ctx    context.Context //nolint:containedctx // it is that of the request
	cancel context.CancelFunc
	ledger *Ledger
}

// read reads from the member, and says what ended the time of the watch.
func (s *stream) read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.ReadCloser.Read(p)
	if err != nil && errors.Is(context.Cause(s.ctx), errWatchTime) {
		s.err = s.ledger.Record(ExceededError{
			Bound: WatchTime, Subject: subjectOf(s.subject), Detail: "the watch did not end at the time that it was asked to",
		})
		// An end that the server should have made is an end, and no failure.
		return n, io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	defer s.cancel()
	return s.ReadCloser.Close()
}

// lines is a watch in JSON: one object after the other, and each is an event.
type lines struct{ stream }

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	n, err := l.read(p)
	for rest := p[:n]; len(rest) > 0; {
		counted, ended, exceeded := l.count(rest)
		if exceeded != nil {
			l.err = exceeded
			return 0, exceeded
		}
		if ended {
			l.reset()
		}
		rest = rest[counted:]
	}
	return n, err
}

// frames is a watch in protobuf: four bytes say how long the event is that follows.
type frames struct {
	stream
	head [4]byte
	// seen counts the bytes of the head that were read, left those of the event that
	// were not.
	seen int
	left int64
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.read(p)
	for rest := p[:n]; len(rest) > 0; {
		if f.left > 0 {
			taken := min(f.left, int64(len(rest)))
			f.left -= taken
			rest = rest[taken:]
			continue
		}
		f.head[f.seen] = rest[0]
		rest = rest[1:]
		if f.seen++; f.seen < len(f.head) {
			continue
		}
		f.seen, f.left = 0, int64(binary.BigEndian.Uint32(f.head[:]))
		if f.left > f.bytesAllowed {
			f.err = f.record(ExceededError{
				Bound: EventBytes, Subject: subjectOf(f.subject),
				Detail: fmt.Sprintf("an event is %d bytes long, %d are allowed", f.left, f.bytesAllowed),
			})
			return 0, f.err
		}
	}
	return n, err
}
