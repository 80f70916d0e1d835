package script

import (
	"context"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// matcher matches Lua patterns. gopher-lua's matcher does not check the context: a pattern with several
// repetitions can occupy it for hours, and so can string.gsub with a long string. Shorter limits for
// patterns and strings would not help, because an ordinary pattern for a time has six repetitions, and
// Go's regular expressions have neither %b nor references. This matcher ends with the context.
type matcher struct {
	ctx     context.Context //nolint:containedctx // It lives as long as one call.
	state   *lua.LState
	subject string
	// pattern does not include the anchor.
	pattern    string
	isAnchored bool
	// start, end and captures are the result of find.
	start, end int
	captures   []capture
	depth      int
	steps      int
}

// capture is a part of the subject.
type capture struct{ start, length int }

// The lengths of captures that are not a part of the subject.
const (
	openCapture      = -1
	capturedPosition = -2
)

const (
	// maxPattern is the maximum length of a pattern, in bytes: a step can read all of a set.
	maxPattern = 4 << 10
	// maxPatternDepth is the maximum number of repetitions and captures in a pattern: each of them needs
	// a level of recursion.
	maxPatternDepth = 200
	maxCaptures     = 32
	// stepsPerCheck is the number of steps after which a matcher checks the context.
	stepsPerCheck = 1024
)

func (s *sandbox) newMatcher(subject, pattern string) *matcher {
	m := &matcher{ctx: s.ctx, state: s.state, subject: subject}
	m.pattern, m.isAnchored = strings.CutPrefix(pattern, "^")
	if len(pattern) > maxPattern {
		m.fail("more than 4 KiB")
	}
	return m
}

// find searches for the first match that starts at offset or later.
func (m *matcher) find(offset int) bool {
	for m.start = offset; m.start <= len(m.subject); m.start++ {
		m.captures, m.depth = m.captures[:0], 0
		if m.end = m.match(m.start, 0); m.end >= 0 {
			return true
		}
		if m.isAnchored {
			break
		}
	}
	return false
}

// next returns the offset for the search of the next match.
func (m *matcher) next() int {
	if m.end == m.start {
		return m.end + 1
	}
	return m.end
}

func (m *matcher) fail(message string) {
	m.state.RaiseError("malformed pattern (%s)", message)
}

func (m *matcher) step() {
	if m.steps++; m.steps%stepsPerCheck == 0 && m.ctx.Err() != nil {
		m.state.RaiseError("%s", m.ctx.Err().Error())
	}
}

// match matches the pattern from index p on at offset s of the subject. It returns the end of the match,
// or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxPatternDepth {
		m.fail("too complex")
	}
	defer func() { m.depth-- }()
	for p < len(m.pattern) {
		m.step()
		switch char := m.pattern[p]; {
		case char == '(':
			return m.open(s, p+1)
		case char == ')':
			return m.close(s, p+1)
		case char == '$' && p == len(m.pattern)-1:
			if s < len(m.subject) {
				return -1
			}
			return s
		case char == '%' && p+1 < len(m.pattern) && strings.IndexByte("bf0123456789", m.pattern[p+1]) >= 0:
			if s, p = m.special(s, p+1); s < 0 {
				return -1
			}
			continue
		}
		last := m.lastOfItem(p)
		if last+1 < len(m.pattern) && strings.IndexByte("*+-?", m.pattern[last+1]) >= 0 {
			return m.repeat(s, p, last)
		}
		if !m.matchesOne(s, p, last) {
			return -1
		}
		s, p = s+1, last+1
	}
	for _, c := range m.captures {
		if c.length == openCapture {
			m.fail("unfinished capture")
		}
	}
	return s
}

// repeat matches the item from index p to last with its suffix, and the rest of the pattern.
func (m *matcher) repeat(s, p, last int) int {
	switch m.pattern[last+1] {
	case '*':
		return m.longest(s, p, last, s)
	case '+':
		return m.longest(s, p, last, s+1)
	case '-':
		return m.shortest(s, p, last)
	}
	if m.matchesOne(s, p, last) {
		if end := m.match(s+1, last+2); end >= 0 {
			return end
		}
	}
	return m.match(s, last+2)
}

// open begins a capture, or captures a position, and matches the rest of the pattern from index p on.
func (m *matcher) open(s, p int) int {
	count := len(m.captures)
	if count == maxCaptures {
		m.fail("too many captures")
	}
	opened := capture{start: s, length: openCapture}
	if p < len(m.pattern) && m.pattern[p] == ')' {
		opened.length = capturedPosition
		p++
	}
	m.captures = append(m.captures, opened)
	end := m.match(s, p)
	if end < 0 {
		m.captures = m.captures[:count]
	}
	return end
}

// close ends the last open capture and matches the rest of the pattern from index p on.
func (m *matcher) close(s, p int) int {
	i := len(m.captures) - 1
	for i >= 0 && m.captures[i].length != openCapture {
		i--
	}
	if i < 0 {
		m.fail("invalid pattern capture")
	}
	m.captures[i].length = s - m.captures[i].start
	end := m.match(s, p)
	if end < 0 {
		m.captures[i].length = openCapture
	}
	return end
}

// special matches %bxy, %f[set] or a reference such as %1. p is the index after the %. It returns the
// end of the match, or -1, and the index of the rest of the pattern.
func (m *matcher) special(s, p int) (end, rest int) {
	switch m.pattern[p] {
	case 'b':
		if p+2 >= len(m.pattern) {
			m.fail("missing characters after '%b'")
		}
		return m.balance(s, m.pattern[p+1], m.pattern[p+2]), p + 3
	case 'f':
		if p+1 >= len(m.pattern) || m.pattern[p+1] != '[' {
			m.fail("missing '[' after '%f'")
		}
		last := m.lastOfItem(p + 1)
		if m.isInSet(m.byteAt(s), p+1, last) && !m.isInSet(m.byteAt(s-1), p+1, last) {
			return s, last + 1
		}
		return -1, 0
	}
	number := int(m.pattern[p]) - '1'
	if number < 0 || number >= len(m.captures) || m.captures[number].length == openCapture {
		m.fail("invalid capture index")
	}
	c := m.captures[number]
	if c.length == capturedPosition || !strings.HasPrefix(m.subject[s:], m.subject[c.start:c.start+c.length]) {
		return -1, 0
	}
	return s + c.length, p + 1
}

// balance matches text with as many first as last bytes, from a first to a last byte.
func (m *matcher) balance(s int, first, last byte) int {
	if s >= len(m.subject) || m.subject[s] != first {
		return -1
	}
	nesting := 1
	for s++; s < len(m.subject); s++ {
		m.step()
		switch m.subject[s] {
		case last:
			if nesting--; nesting == 0 {
				return s + 1
			}
		case first:
			nesting++
		}
	}
	return -1
}

// longest matches as many repetitions of an item as possible, and at least those before minimum.
func (m *matcher) longest(s, p, last, minimum int) int {
	end := s
	for m.matchesOne(end, p, last) {
		m.step()
		end++
	}
	for ; end >= minimum; end-- {
		if result := m.match(end, last+2); result >= 0 {
			return result
		}
	}
	return -1
}

// shortest matches as few repetitions of an item as possible.
func (m *matcher) shortest(s, p, last int) int {
	for {
		if end := m.match(s, last+2); end >= 0 {
			return end
		}
		if !m.matchesOne(s, p, last) {
			return -1
		}
		s++
	}
}

// lastOfItem returns the index of the last character of the item at index p, without its suffix.
func (m *matcher) lastOfItem(p int) int {
	switch m.pattern[p] {
	case '%':
		if p+1 == len(m.pattern) {
			m.fail("ends with '%'")
		}
		return p + 1
	case '[':
		end := p + 1
		if end < len(m.pattern) && m.pattern[end] == '^' {
			end++
		}
		for isFirst := true; isFirst || end < len(m.pattern) && m.pattern[end] != ']'; isFirst = false {
			if end < len(m.pattern) && m.pattern[end] == '%' {
				end++
			}
			end++
		}
		if end >= len(m.pattern) {
			m.fail("missing ']'")
		}
		return end
	}
	return p
}

// matchesOne reports whether the item from index p to last matches the byte at offset s.
func (m *matcher) matchesOne(s, p, last int) bool {
	if s >= len(m.subject) {
		return false
	}
	switch char := m.subject[s]; m.pattern[p] {
	case '.':
		return true
	case '%':
		return isInClass(char, m.pattern[last])
	case '[':
		return m.isInSet(char, p, last)
	default:
		return char == m.pattern[p]
	}
}

// byteAt returns a byte of the subject, or 0 before its start and after its end.
func (m *matcher) byteAt(s int) byte {
	if s < 0 || s >= len(m.subject) {
		return 0
	}
	return m.subject[s]
}

// isInSet reports whether the set with its brackets at the indexes p and last contains a byte.
func (m *matcher) isInSet(char byte, p, last int) bool {
	p++
	isNegated := m.pattern[p] == '^'
	if isNegated {
		p++
	}
	for ; p < last; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if isInClass(char, m.pattern[p]) {
				return !isNegated
			}
		case p+2 < last && m.pattern[p+1] == '-':
			if m.pattern[p] <= char && char <= m.pattern[p+2] {
				return !isNegated
			}
			p += 2
		case m.pattern[p] == char:
			return !isNegated
		}
	}
	return isNegated
}

// isInClass reports whether the class %class contains a byte.
func isInClass(char, class byte) bool {
	const toLower = 'a' - 'A'
	isUpper, isLower := 'A' <= char && char <= 'Z', 'a' <= char && char <= 'z'
	isDigit := '0' <= char && char <= '9'
	var isIn bool
	switch class | toLower {
	case 'a':
		isIn = isUpper || isLower
	case 'c':
		isIn = char < ' ' || char == 0x7f
	case 'd':
		isIn = isDigit
	case 'l':
		isIn = isLower
	case 'p':
		isIn = '!' <= char && char <= '~' && !isUpper && !isLower && !isDigit
	case 's':
		isIn = char == ' ' || '\t' <= char && char <= '\r'
	case 'u':
		isIn = isUpper
	case 'w':
		isIn = isUpper || isLower || isDigit
	case 'x':
		isIn = isDigit || 'a' <= char|toLower && char|toLower <= 'f'
	case 'z':
		isIn = char == 0
	default:
		return class == char
	}
	isComplement := 'A' <= class && class <= 'Z'
	return isIn != isComplement
}
