package pattern

import "strings"

// Stepper counts the steps of a search. It may end the search with a panic.
type Stepper interface {
	Step(n int)
}

// stepsPerReport is the number of steps after which a search reports them.
const stepsPerReport = 256

// Matcher searches one subject. It holds the captures of the last match.
type Matcher struct {
	pattern  *Pattern
	subject  string
	stepper  Stepper
	steps    int
	captures [MaxCaptures]span
}

// span is a part of the subject. The end of a captured position is position.
type span struct{ start, end int32 }

const position = -1

// MaxSubject is the maximum length of a subject, in bytes.
const MaxSubject = 1<<31 - 2

// NewMatcher returns a Matcher. The subject must not be longer than MaxSubject.
func NewMatcher(pattern *Pattern, subject string, stepper Stepper) *Matcher {
	return &Matcher{pattern: pattern, subject: subject, stepper: stepper}
}

// Find searches for the first match that starts at offset or later. The offset must not be larger
// than the length of the subject.
func (m *Matcher) Find(offset int) (start, end int, found bool) {
	defer m.report()
	for start = offset; start <= len(m.subject); start++ {
		if start = m.skip(start); start < 0 {
			break
		}
		if end := m.match(0, start); end >= 0 {
			return start, end, true
		}
		if m.pattern.anchored {
			break
		}
	}
	return 0, 0, false
}

// MatchAt searches for a match that starts at offset.
func (m *Matcher) MatchAt(offset int) (end int, found bool) {
	defer m.report()
	end = m.match(0, offset)
	return end, end >= 0
}

// Capture returns a capture of the last match. The number of the first capture is 0. For a captured
// position, the text is empty and the position counts from 1. For any other capture, the position
// is 0.
func (m *Matcher) Capture(number int) (text string, captured int) {
	capture := m.captures[number]
	if capture.end == position {
		return "", int(capture.start) + 1
	}
	return m.subject[capture.start:capture.end], 0
}

// skip returns the first offset from start at which the pattern can match, or -1 if there is none.
func (m *Matcher) skip(start int) int {
	if m.pattern.anchored || len(m.pattern.items) == 0 {
		return start
	}
	first := &m.pattern.items[0]
	if first.operation != matchByte || first.repetition != 0 {
		return start
	}
	distance := strings.IndexByte(m.subject[start:], first.first)
	if distance < 0 {
		m.step(1 + (len(m.subject)-start)/16)
		return -1
	}
	m.step(1 + distance/16)
	return start + distance
}

func (m *Matcher) step(n int) {
	if m.steps += n; m.steps >= stepsPerReport {
		m.report()
	}
}

// report reports the steps since the last report.
func (m *Matcher) report() {
	if steps := m.steps; steps > 0 {
		m.steps = 0
		m.stepper.Step(steps)
	}
}

// match matches the items from index i on at offset. It returns the end of the match, or -1.
//
// Items are matched in order, so each capture that a match uses was set on the way to the match.
// Therefore a failed attempt need not restore captures.
func (m *Matcher) match(i, offset int) int {
	for ; i < len(m.pattern.items); i++ {
		current := &m.pattern.items[i]
		m.step(1)
		if current.repetition != 0 {
			return m.repeat(current, i+1, offset)
		}
		if offset = m.matchItem(current, offset); offset < 0 {
			return -1
		}
	}
	return offset
}

// matchItem matches one item without repetition. It returns the offset after it, or -1.
func (m *Matcher) matchItem(current *item, offset int) int {
	switch current.operation {
	case openCapture:
		m.captures[current.capture].start = int32(offset)
		return offset
	case closeCapture:
		m.captures[current.capture].end = int32(offset)
		return offset
	case capturePosition:
		m.captures[current.capture] = span{start: int32(offset), end: position}
		return offset
	case matchBalance:
		return m.balance(current, offset)
	case matchFrontier:
		if current.set.has(m.byteAt(offset)) && !current.set.has(m.byteAt(offset-1)) {
			return offset
		}
		return -1
	case matchCapture:
		return m.reference(int(current.capture), offset)
	case matchEnd:
		if offset == len(m.subject) {
			return offset
		}
		return -1
	default:
		if m.single(current, offset) {
			return offset + 1
		}
		return -1
	}
}

// byteAt returns a byte of the subject, or 0 before its start and after its end.
func (m *Matcher) byteAt(offset int) byte {
	if offset < 0 || offset >= len(m.subject) {
		return 0
	}
	return m.subject[offset]
}

// single reports whether the item matches the byte at offset.
func (m *Matcher) single(current *item, offset int) bool {
	if offset >= len(m.subject) {
		return false
	}
	switch current.operation {
	case matchByte:
		return m.subject[offset] == current.first
	case matchAny:
		return true
	default:
		return current.set.has(m.subject[offset])
	}
}

// repeat matches an item with a suffix, and the items from index next on.
func (m *Matcher) repeat(current *item, next, offset int) int {
	switch current.repetition {
	case '*':
		return m.longest(current, next, offset, offset)
	case '+':
		return m.longest(current, next, offset, offset+1)
	case '?':
		if m.single(current, offset) {
			if end := m.match(next, offset+1); end >= 0 {
				return end
			}
		}
		return m.match(next, offset)
	default:
		return m.shortest(current, next, offset)
	}
}

// longest matches as many repetitions of the item as possible, and at least those before minimum.
func (m *Matcher) longest(current *item, next, offset, minimum int) int {
	end := offset
	for m.single(current, end) {
		m.step(1)
		end++
	}
	for ; end >= minimum; end-- {
		if result := m.match(next, end); result >= 0 {
			return result
		}
		m.step(1)
	}
	return -1
}

// shortest matches as few repetitions of the item as possible.
func (m *Matcher) shortest(current *item, next, offset int) int {
	for {
		if end := m.match(next, offset); end >= 0 {
			return end
		}
		if !m.single(current, offset) {
			return -1
		}
		m.step(1)
		offset++
	}
}

// balance matches text that starts with the first byte of %b and ends with its last byte, with as
// many first as last bytes.
func (m *Matcher) balance(current *item, offset int) int {
	if offset >= len(m.subject) || m.subject[offset] != current.first {
		return -1
	}
	open := 1
	for offset++; offset < len(m.subject); offset++ {
		m.step(1)
		switch m.subject[offset] {
		case current.last:
			if open--; open == 0 {
				return offset + 1
			}
		case current.first:
			open++
		}
	}
	return -1
}

// reference matches the text of an earlier capture. A captured position has no text, so that it
// matches nothing.
func (m *Matcher) reference(capture, offset int) int {
	text := m.captures[capture]
	if text.end == position {
		return -1
	}
	length := int(text.end - text.start)
	m.step(1 + length/16)
	if !strings.HasPrefix(m.subject[offset:], m.subject[text.start:text.end]) {
		return -1
	}
	return offset + length
}
