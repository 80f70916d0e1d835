package script

import (
	"context"
	"fmt"
	"time"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
)

// checkInterval is the number of steps after which a run looks at the clock. A step takes at most
// about 10 microseconds.
const checkInterval = 256

// stringBytesPerStep is the length of a string that one instruction can compare in one step.
const stringBytesPerStep = 2048

// budget counts what a run uses. It is the context of the Lua state, because the virtual machine
// calls Done before each instruction. So the budget needs no timer, and no script can escape from
// it: once it is spent, every further instruction fails, also in the handler of an error.
type budget struct {
	parent context.Context //nolint:containedctx // The budget is a context itself, and lives as long as one call.
	limits *Limits
	now    func() time.Time
	closed <-chan struct{}

	deadline  time.Time
	countdown int
	// weight is the number of steps of one instruction. It grows with the longest string of the run,
	// because the virtual machine compares strings in one instruction.
	weight    int
	allocated int64
	// spent is the reason why the run must end.
	spent error
}

// limitError means that a script exceeded a limit of its run.
type limitError struct{ limit string }

func (e *limitError) Error() string {
	return fmt.Sprintf("the call exceeded %s: simplify the script", e.limit)
}

// start begins to count.
func (b *budget) start(parent context.Context, now time.Time) {
	b.parent, b.deadline = parent, now.Add(b.limits.Time)
	b.countdown, b.weight, b.allocated, b.spent = checkInterval, 1, 0, nil
}

// use counts steps, and returns the reason if the run must end.
func (b *budget) use(steps int) error {
	b.countdown -= steps
	if b.countdown <= 0 {
		b.check()
	}
	return b.spent
}

func (b *budget) check() {
	if b.spent == nil {
		if b.parent.Err() != nil {
			b.spent = fmt.Errorf("the call was canceled: %w", context.Cause(b.parent))
		} else if !b.now().Before(b.deadline) {
			b.spent = &limitError{limit: fmt.Sprintf("the time limit of %s", b.limits.Time)}
		}
	}
	b.countdown = checkInterval
	if b.spent != nil {
		b.countdown = 0
	}
}

// reserve counts bytes, and returns the reason if the run must end.
func (b *budget) reserve(bytes int) error {
	b.allocated += int64(bytes)
	if b.allocated > b.limits.Memory && b.spent == nil {
		b.spent = &limitError{limit: "the memory limit of " + byteText(b.limits.Memory)}
		b.countdown = 0
	}
	return b.spent
}

// byteText returns a number of bytes for messages.
func byteText(bytes int64) string {
	const mebi = 1 << 20
	if bytes >= mebi && bytes%mebi == 0 {
		return fmt.Sprintf("%d MiB", bytes/mebi)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// Done implements context.Context. The channel is closed if the budget is spent.
func (b *budget) Done() <-chan struct{} {
	if b.countdown -= b.weight; b.countdown > 0 {
		return nil
	}
	if b.check(); b.spent != nil {
		return b.closed
	}
	return nil
}

// Err implements context.Context.
func (b *budget) Err() error { return b.spent }

// Deadline implements context.Context.
func (b *budget) Deadline() (time.Time, bool) { return b.deadline, true }

// Value implements context.Context.
func (b *budget) Value(key any) any { return b.parent.Value(key) }

// Step implements stdlib.Host.
func (s *sandbox) Step(n int) { s.raise(s.use(n)) }

// Allocate implements stdlib.Host.
func (s *sandbox) Allocate(bytes int) { s.raise(s.reserve(bytes)) }

// String implements stdlib.Host.
func (s *sandbox) String(length int) {
	if length > s.limits.String {
		s.state.RaiseError("a string of %d bytes exceeds the limit of %s for one string", length, byteText(int64(s.limits.String)))
	}
	s.Allocate(length)
	s.noticeString(length)
}

// noticeString takes account of a string that the run can use.
func (b *budget) noticeString(length int) {
	b.weight = max(b.weight, 1+length/stringBytesPerStep)
}

// raise raises an error in the script, unless err is nil.
func (s *sandbox) raise(err error) {
	if err != nil {
		s.state.RaiseError("%s", err.Error())
	}
}

// Now implements stdlib.Host.
func (s *sandbox) Now() time.Time { return s.now() }

var (
	_ context.Context = &budget{}
	_ stdlib.Host     = &sandbox{}
)
