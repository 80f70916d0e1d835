package script

import (
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

const (
	// maxString is the maximum length of a string that a script creates, in bytes.
	maxString = 1 << 20
	// maxStringBytes is the maximum total length of the strings that a call creates.
	maxStringBytes = 64 << 20
	// maxNumberText is the maximum length of a formatted number: 309 digits, and 99 after the point.
	maxNumberText = 512
	// concatFunction is the name of the global function for a .. b. It is not an identifier, so that no
	// script uses it by accident.
	concatFunction = " concat"
)

// checkLength raises an error unless a script may create a string of the given length.
func (s *sandbox) checkLength(length int) {
	if length > maxString {
		s.state.RaiseError("a string of %d bytes exceeds the limit of %d MiB for one string", length, maxString>>20)
	}
}

// pushString returns a string that a function has created. If the string can be much longer than the
// arguments, the caller must call checkLength before it creates the string.
func (s *sandbox) pushString(text string) int {
	s.checkLength(len(text))
	if s.stringBytes += len(text); s.stringBytes > maxStringBytes {
		s.state.RaiseError("the strings of the call exceed the limit of %d MiB in total", maxStringBytes>>20)
	}
	s.state.Push(lua.LString(text))
	return 1
}

// concat is a .. b .. …
func (s *sandbox) concat(state *lua.LState) int {
	parts := make([]string, state.GetTop())
	length := 0
	for i := range parts {
		value := state.Get(i + 1)
		if !lua.LVCanConvToString(value) {
			state.RaiseError("attempt to concatenate a %s value", value.Type())
		}
		parts[i] = value.String()
		length += len(parts[i])
	}
	s.checkLength(length)
	return s.pushString(strings.Join(parts, ""))
}

// concatTable is table.concat(table [, separator [, first [, last]]]).
func (s *sandbox) concatTable(state *lua.LState) int {
	table, separator := state.CheckTable(1), state.OptString(2, "")
	s.load(table)
	var parts []string
	length := 0
	last := state.OptInt(4, table.Len())
	for i := state.OptInt(3, 1); i <= last; i++ {
		value := table.RawGet(lua.LNumber(i))
		if !lua.LVCanConvToString(value) {
			state.RaiseError("invalid value (%s) at index %d in table for 'concat'", value.Type(), i)
		}
		parts = append(parts, value.String())
		length += len(parts[len(parts)-1]) + len(separator)
		s.checkLength(length - len(separator))
	}
	return s.pushString(strings.Join(parts, separator))
}

// repeat is string.rep(text, count).
func (s *sandbox) repeat(state *lua.LState) int {
	text, count := state.CheckString(1), max(state.CheckInt(2), 0)
	if text == "" {
		count = 0
	} else if count > maxString/len(text) {
		state.RaiseError("a string of %d times %d bytes exceeds the limit of %d MiB for one string", count, len(text), maxString>>20)
	}
	return s.pushString(strings.Repeat(text, count))
}

// unboundedDirective matches directives that Go has and Lua has not: three digits for a width or a
// precision, a width in an argument, and an argument that is used repeatedly.
var unboundedDirective = regexp.MustCompile(`%[-+ #0-9.]*([0-9]{3}|[*\[])`)

// boundedFormat returns string.format(format, …) with gopher-lua's function for it.
func (s *sandbox) boundedFormat(format lua.LGFunction) lua.LGFunction {
	return func(state *lua.LState) int {
		layout := state.CheckString(1)
		if unboundedDirective.MatchString(strings.ReplaceAll(layout, "%%", "")) {
			state.RaiseError("invalid format (width or precision too long)")
		}
		length := len(layout) + maxNumberText*strings.Count(layout, "%")
		for i := 2; i <= state.GetTop(); i++ {
			length += len(state.Get(i).String())
		}
		s.checkLength(length)
		format(state)
		return s.pushString(state.ToString(-1))
	}
}

// plainText matches patterns that match themselves only.
var plainText = regexp.MustCompile(`^[^$*+?.()\[%^-]*$`)

func (s *sandbox) find(state *lua.LState) int  { return s.search(state, true) }
func (s *sandbox) match(state *lua.LState) int { return s.search(state, false) }

// search implements string.find, which also returns the position of the match, and string.match.
func (s *sandbox) search(state *lua.LState, withPosition bool) int {
	subject, pattern := state.CheckString(1), state.CheckString(2)
	offset := state.OptInt(3, 1)
	if offset < 0 {
		offset += len(subject) + 1
	}
	offset = min(max(offset-1, 0), len(subject))
	if withPosition && (state.ToBool(4) || plainText.MatchString(pattern)) {
		distance := strings.Index(subject[offset:], pattern)
		if distance < 0 {
			state.Push(lua.LNil)
			return 1
		}
		state.Push(lua.LNumber(offset + distance + 1))
		state.Push(lua.LNumber(offset + distance + len(pattern)))
		return 2
	}
	m := s.newMatcher(subject, pattern)
	if !m.find(offset) {
		state.Push(lua.LNil)
		return 1
	}
	if !withPosition {
		return m.pushCaptures(state)
	}
	state.Push(lua.LNumber(m.start + 1))
	state.Push(lua.LNumber(m.end))
	if len(m.captures) == 0 {
		return 2
	}
	return 2 + m.pushCaptures(state)
}

// gmatch is string.gmatch(subject, pattern).
func (s *sandbox) gmatch(state *lua.LState) int {
	m := s.newMatcher(state.CheckString(1), state.CheckString(2))
	if m.isAnchored {
		// The ^ matches itself, because an anchor would make no sense in an iteration.
		m.pattern, m.isAnchored = "^"+m.pattern, false
	}
	offset := 0
	state.Push(state.NewFunction(func(state *lua.LState) int {
		if offset > len(m.subject) || !m.find(offset) {
			offset = len(m.subject) + 1
			return 0
		}
		offset = m.next()
		return m.pushCaptures(state)
	}))
	return 1
}

// gsub is string.gsub(subject, pattern, replacement [, limit]).
func (s *sandbox) gsub(state *lua.LState) int {
	m := s.newMatcher(state.CheckString(1), state.CheckString(2))
	replacement := state.Get(3)
	switch replacement.Type() {
	case lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction:
	default:
		state.ArgError(3, "string, table or function expected, got "+replacement.Type().String())
	}
	var result strings.Builder
	write := func(text string) {
		s.checkLength(result.Len() + len(text))
		result.WriteString(text)
	}
	count, copied := 0, 0
	for offset, limit := 0, state.OptInt(4, len(m.subject)+1); count < limit && offset <= len(m.subject) && m.find(offset); offset = m.next() {
		count++
		write(m.subject[copied:m.start])
		m.replace(state, replacement, write)
		copied = m.end
		if m.isAnchored {
			break
		}
	}
	write(m.subject[copied:])
	s.pushString(result.String())
	state.Push(lua.LNumber(count))
	return 2
}

// replace writes the replacement of a match.
func (m *matcher) replace(state *lua.LState, replacement lua.LValue, write func(string)) {
	var value lua.LValue
	switch replacement := replacement.(type) {
	case *lua.LTable:
		value = state.GetTable(replacement, m.capture(state, 0))
	case *lua.LFunction:
		state.Push(replacement)
		state.Call(m.pushCaptures(state), 1)
		value = state.Get(-1)
		state.Pop(1)
	default:
		m.expand(state, replacement.String(), write)
		return
	}
	switch {
	case lua.LVIsFalse(value):
		write(m.subject[m.start:m.end])
	case lua.LVCanConvToString(value):
		write(value.String())
	default:
		state.RaiseError("invalid replacement value (a %s)", value.Type())
	}
}

// expand writes a replacement in which %1 stands for a capture, %0 for the whole match and %% for %.
func (m *matcher) expand(state *lua.LState, replacement string, write func(string)) {
	for {
		mark := strings.IndexByte(replacement, '%')
		if mark < 0 || mark == len(replacement)-1 {
			write(replacement)
			return
		}
		write(replacement[:mark])
		switch char := replacement[mark+1]; {
		case char == '%':
			write("%")
		case char == '0':
			write(m.subject[m.start:m.end])
		case char >= '1' && char <= '9':
			write(m.capture(state, int(char-'1')).String())
		default:
			// The manual does not define this: as in gopher-lua, both characters stay.
			write(replacement[mark : mark+2])
		}
		replacement = replacement[mark+2:]
	}
}

// pushCaptures returns all captures of a match, or the whole match if the pattern has none.
func (m *matcher) pushCaptures(state *lua.LState) int {
	count := max(len(m.captures), 1)
	for i := range count {
		state.Push(m.capture(state, i))
	}
	return count
}

// capture returns a capture of a match. The first capture is the whole match if the pattern has none.
func (m *matcher) capture(state *lua.LState, number int) lua.LValue {
	switch {
	case number == 0 && len(m.captures) == 0:
		return lua.LString(m.subject[m.start:m.end])
	case number >= len(m.captures):
		state.RaiseError("invalid capture index %%%s", strconv.Itoa(number+1))
	}
	c := m.captures[number]
	if c.length == capturedPosition {
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.subject[c.start : c.start+c.length])
}
