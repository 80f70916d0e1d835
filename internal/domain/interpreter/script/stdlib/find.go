package stdlib

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib/pattern"
)

// specials are the characters that distinguish a pattern from plain text.
const specials = "^$*+?.([%-"

// compile parses a pattern. It raises an error if the pattern is malformed.
func compile(state *lua.LState, host Host, text string, parse func(string) (*pattern.Pattern, error)) *pattern.Pattern {
	host.Allocate(matcherBytes + len(text)*pattern.ItemBytes)
	host.Step(1 + len(text))
	compiled, err := parse(text)
	if err != nil {
		state.RaiseError("%v", err)
	}
	return compiled
}

// newMatcher compiles a pattern for a subject.
func newMatcher(state *lua.LState, host Host, subject, text string, parse func(string) (*pattern.Pattern, error)) (*pattern.Matcher, *pattern.Pattern) {
	if len(subject) > pattern.MaxSubject {
		state.RaiseError("the string is too long to search")
	}
	compiled := compile(state, host, text, parse)
	host.Allocate(matcherBytes)
	return pattern.NewMatcher(compiled, subject, host), compiled
}

func stringFind(state *lua.LState) int  { return find(state, true) }
func stringMatch(state *lua.LState) int { return find(state, false) }

// find implements the functions find, which also returns the position of the match, and match.
func find(state *lua.LState, withPosition bool) int {
	host := HostOf(state)
	subject, text := checkString(state, 1), checkString(state, 2)
	offset := min(max(absolute(optInteger(state, 3, 1), len(subject))-1, 0), len(subject))
	if withPosition && (lua.LVAsBool(state.Get(4)) || !strings.ContainsAny(text, specials)) {
		return findText(state, host, subject, text, offset)
	}
	matcher, compiled := newMatcher(state, host, subject, text, pattern.Compile)
	start, end, found := matcher.Find(offset)
	if !found {
		state.Push(lua.LNil)
		return 1
	}
	if !withPosition {
		return pushCaptures(state, host, matcher, compiled, subject[start:end])
	}
	state.Push(integer(start + 1))
	state.Push(integer(end))
	if compiled.Captures() == 0 {
		return 2
	}
	return 2 + pushCaptures(state, host, matcher, compiled, "")
}

// findText searches for plain text.
func findText(state *lua.LState, host Host, subject, text string, offset int) int {
	host.Step(1 + (len(subject)-offset+len(text))/stepBytes)
	distance := strings.Index(subject[offset:], text)
	if distance < 0 {
		state.Push(lua.LNil)
		return 1
	}
	state.Push(integer(offset + distance + 1))
	state.Push(integer(offset + distance + len(text)))
	return 2
}

// pushCaptures pushes all captures of a match, or the whole match if the pattern has no captures.
func pushCaptures(state *lua.LState, host Host, matcher *pattern.Matcher, compiled *pattern.Pattern, match string) int {
	if compiled.Captures() == 0 {
		pushPart(state, host, match)
		return 1
	}
	for i := range compiled.Captures() {
		pushCapture(state, host, matcher, i)
	}
	return compiled.Captures()
}

func pushCapture(state *lua.LState, host Host, matcher *pattern.Matcher, number int) {
	if part, position := matcher.Capture(number); position > 0 {
		state.Push(integer(position))
	} else {
		pushPart(state, host, part)
	}
}

// stringGmatch is gmatch(subject, pattern). A ^ at the start of the pattern matches itself, because
// an anchor would make no sense in an iteration. (gopher-lua returns at most one match.)
func stringGmatch(state *lua.LState) int {
	host := HostOf(state)
	subject := checkString(state, 1)
	matcher, compiled := newMatcher(state, host, subject, checkString(state, 2), pattern.CompileUnanchored)
	host.Allocate(entryBytes)
	offset := 0
	state.Push(state.NewFunction(func(state *lua.LState) int {
		host := HostOf(state)
		host.Step(1)
		if offset > len(subject) {
			return 0
		}
		start, end, found := matcher.Find(offset)
		if !found {
			offset = len(subject) + 1
			return 0
		}
		if offset = end; start == end {
			offset++
		}
		return pushCaptures(state, host, matcher, compiled, subject[start:end])
	}))
	return 1
}
