package bounds

import (
	"context"
	"io"
)

// slotBody is the body of a response. When the response becomes large, slotBody waits for one of the
// slots that limit how many large responses of a member are read at once. It holds the slot until it
// is closed or, for a page that ReadPage requested, until ReadPage has processed the page. A slot
// always becomes free, because requests have a timeout.
type slotBody struct {
	*bodyMeter
	ctx     context.Context //nolint:containedctx // it is that of the request
	slots   chan struct{}
	hasSlot bool
}

// Read implements io.Reader.
func (s *slotBody) Read(p []byte) (int, error) {
	attempt := pageAttemptFrom(s.ctx)
	if !s.hasSlot && attempt != nil && attempt.slots != nil {
		s.hasSlot = true
	}
	if !s.hasSlot && s.isLarge() {
		select {
		case s.slots <- struct{}{}:
			s.hasSlot = true
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
	n, err := s.bodyMeter.Read(p)
	if !s.hasSlot && s.isLarge() && err == io.EOF { //nolint:errorlint // a reader returns io.EOF itself
		// The next call of Read returns io.EOF after it has taken a slot. So the caller decodes the
		// response only while slotBody holds a slot.
		err = nil
	}
	return n, err
}

// Close implements io.Closer.
func (s *slotBody) Close() error {
	if s.hasSlot {
		s.hasSlot = false
		if attempt := pageAttemptFrom(s.ctx); attempt != nil {
			attempt.slots = s.slots
		} else {
			<-s.slots
		}
	}
	return s.bodyMeter.Close()
}
