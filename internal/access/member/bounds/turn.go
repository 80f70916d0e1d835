package bounds

import (
	"context"
	"io"
)

// turn is the body of an answer. Once it is large it waits for a place among the large
// answers of its member, and holds the place until it is closed, or until the attempt
// that it belongs to ends. A request has its time, so that a place comes free.
type turn struct {
	*meter
	ctx    context.Context //nolint:containedctx // it is that of the request
	places chan struct{}
	held   bool
}

// Read implements io.Reader.
func (t *turn) Read(p []byte) (int, error) {
	of := attemptOf(t.ctx)
	if !t.held && of != nil && of.place != nil {
		t.held = true
	}
	if !t.held && t.isLarge() {
		select {
		case t.places <- struct{}{}:
			t.held = true
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		}
	}
	n, err := t.meter.Read(p)
	if !t.held && t.isLarge() && err == io.EOF { //nolint:errorlint // a reader returns io.EOF itself
		// What is at hand is decoded in the place, too.
		err = nil
	}
	return n, err
}

// Close implements io.Closer.
func (t *turn) Close() error {
	if t.held {
		t.held = false
		if of := attemptOf(t.ctx); of != nil {
			of.place = t.places
		} else {
			<-t.places
		}
	}
	return t.meter.Close()
}
