package bounds

import "context"

// turn is the body of an answer. Once it is large it waits for a place among the large
// answers of its member, and it holds the place until it is closed. A request has its
// time, so that a place comes free.
type turn struct {
	*meter
	ctx    context.Context //nolint:containedctx // it is that of the request
	places chan struct{}
	held   bool
}

// Read implements io.Reader.
func (t *turn) Read(p []byte) (int, error) {
	if !t.held && t.bytes > largeBytes {
		select {
		case t.places <- struct{}{}:
			t.held = true
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		}
	}
	return t.meter.Read(p)
}

// Close implements io.Closer.
func (t *turn) Close() error {
	if t.held {
		t.held = false
		<-t.places
	}
	return t.meter.Close()
}
