package bounds

import (
	"context"
	"io"
)

// slotBody is the body of an answer. When the answer becomes large, slotBody waits for one of the
// slots that limit how many large answers of a member are read at once. It holds the slot until it
// is closed or, for a page that ReadPage requested, until ReadPage has processed the page. A slot
// always becomes free, because requests have a timeout.
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
		// The next call of Read returns io.EOF after it has taken a slot. So the caller decodes the
		// answer only while slotBody holds a slot.
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
