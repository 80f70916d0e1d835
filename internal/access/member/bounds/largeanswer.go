package bounds

import (
	"context"
	"io"
)

// slotBody is the body of an answer. When the answer becomes large, slotBody waits for a slot for
// large answers of its member. It holds the slot until it is closed, or until the page attempt of
// its request ends. A slot always becomes free, because requests have a timeout.
type slotBody struct {
	*bodyMeter
	ctx     context.Context //nolint:containedctx // it is that of the request
	slots   chan struct{}
	hasSlot bool
}

// Read implements io.Reader.
func (t *slotBody) Read(p []byte) (int, error) {
	attempt := pageAttemptFrom(t.ctx)
	if !t.hasSlot && attempt != nil && attempt.slots != nil {
		t.hasSlot = true
	}
	if !t.hasSlot && t.isLarge() {
		select {
		case t.slots <- struct{}{}:
			t.hasSlot = true
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		}
	}
	n, err := t.bodyMeter.Read(p)
	if !t.hasSlot && t.isLarge() && err == io.EOF { //nolint:errorlint // a reader returns io.EOF itself
		// The error is returned with the next read, because the buffered rest must be decoded
		// within the slot too.
		err = nil
	}
	return n, err
}

// Close implements io.Closer.
func (t *slotBody) Close() error {
	if t.hasSlot {
		t.hasSlot = false
		if attempt := pageAttemptFrom(t.ctx); attempt != nil {
			attempt.slots = t.slots
		} else {
			<-t.slots
		}
	}
	return t.bodyMeter.Close()
}
