package stdlib

import "strings"

const (
	// stepBytes is the number of bytes that a function copies or compares in one step.
	stepBytes = 16
	// stepEntries is the number of values that a function moves in one step.
	stepEntries = 8
	// nextSteps are the steps of one call of next. The call skips removed entries, whose number is
	// unknown.
	nextSteps = 16
	// callSteps are the steps of a call of a Lua function.
	callSteps = 4
	// valueBytes is the size of a value in the array of a table.
	valueBytes = 16
	// arrayBytes is the size of the array that a table gets with its first value.
	arrayBytes = 32 * valueBytes
	// entryBytes is the size of an entry with a key that is not in the array.
	entryBytes = 128
	// matcherBytes is the size of a matcher, and of a pattern of a few characters.
	matcherBytes = 512
	// maxResults is the maximum number of results of a function. Lua has the same limit.
	maxResults = 8000
)

// text builds a string. It reports the bytes before it allocates them.
type text struct {
	host    Host
	builder strings.Builder
}

func (t *text) reserve(bytes int) {
	used, capacity := t.builder.Len(), t.builder.Cap()
	if capacity-used >= bytes {
		return
	}
	t.host.String(used + bytes)
	t.host.Allocate(2*capacity - used) // Grow doubles the capacity
	t.builder.Grow(bytes)
}

func (t *text) write(s string) {
	t.reserve(len(s))
	t.host.Step(len(s) / stepBytes)
	t.builder.WriteString(s)
}

func (t *text) writeByte(char byte) {
	t.reserve(1)
	t.builder.WriteByte(char)
}

// pad writes n spaces. It writes nothing for a negative n.
func (t *text) pad(n int) {
	if n > 0 {
		t.write(strings.Repeat(" ", n)) // at most 99
	}
}

// finish returns the string.
func (t *text) finish() string {
	t.host.String(t.builder.Len())
	return t.builder.String()
}
