package stdlib

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib/pattern"
)

// substitution is one call of gsub.
type substitution struct {
	host    Host
	subject string
	pattern *pattern.Pattern
	matcher *pattern.Matcher
	result  text
	// replace writes the replacement of a match.
	replace func(state *lua.LState, match string)
}

// stringGsub is gsub(subject, pattern, replacement [, limit]).
func stringGsub(state *lua.LState) int {
	host := HostOf(state)
	s := &substitution{host: host, subject: checkString(state, 1), result: text{host: host}}
	s.matcher, s.pattern = newMatcher(state, host, s.subject, checkString(state, 2), pattern.Compile)
	switch replacement := state.Get(3).(type) {
	case lua.LString, lua.LNumber:
		template := checkString(state, 3)
		s.replace = func(state *lua.LState, match string) { s.expand(state, template, match) }
	case *lua.LTable:
		s.replace = func(state *lua.LState, match string) {
			s.pushFirst(state, match)
			key := state.Get(-1)
			state.Pop(1)
			s.use(state, state.GetTable(replacement, key), match)
		}
	case *lua.LFunction:
		s.replace = func(state *lua.LState, match string) {
			host.Step(callSteps)
			state.Push(replacement)
			state.Call(pushCaptures(state, host, s.matcher, s.pattern, match), 1)
			result := state.Get(-1)
			state.Pop(1)
			s.use(state, result, match)
		}
	default:
		raiseTypeError(state, 3, "string, table or function")
	}
	count := s.run(state, optInteger(state, 4, len(s.subject)+1))
	state.Push(lua.LString(s.result.finish()))
	state.Push(integer(count))
	return 2
}

// run replaces up to limit matches and returns their number.
func (s *substitution) run(state *lua.LState, limit int) int {
	count, copied := 0, 0
	for offset := 0; count < limit && offset <= len(s.subject); {
		start, end, found := s.matcher.Find(offset)
		if !found {
			break
		}
		count++
		s.result.write(s.subject[copied:start])
		s.replace(state, s.subject[start:end])
		copied = end
		if offset = end; start == end {
			offset++
		}
		if s.pattern.Anchored() {
			break
		}
	}
	s.result.write(s.subject[copied:])
	return count
}

// pushFirst pushes the first capture, or the whole match if there are no captures.
func (s *substitution) pushFirst(state *lua.LState, match string) {
	if s.pattern.Captures() == 0 {
		pushPart(state, s.host, match)
	} else {
		pushCapture(state, s.host, s.matcher, 0)
	}
}

// use writes the value that a table or function returned for a match. The match stays for nil and
// false.
func (s *substitution) use(state *lua.LState, value lua.LValue, match string) {
	switch value := value.(type) {
	case lua.LString:
		s.result.write(string(value))
	case lua.LNumber:
		s.result.write(value.String())
	default:
		if lua.LVAsBool(value) {
			state.RaiseError("invalid replacement value (a %s)", value.Type())
		}
		s.result.write(match)
	}
}

// expand writes a template, in which %1 stands for a capture, %0 for the whole match, and %% for %.
// The manual does not define any other character after %: as in gopher-lua, both stay. (The
// implementation of Lua drops the %.)
func (s *substitution) expand(state *lua.LState, template, match string) {
	s.host.Step(len(template))
	for i := 0; i < len(template); i++ {
		char := template[i]
		if char != '%' || i == len(template)-1 {
			s.result.writeByte(char)
			continue
		}
		i++
		switch char = template[i]; {
		case char == '%':
			s.result.writeByte('%')
		case char == '0' || char == '1' && s.pattern.Captures() == 0:
			s.result.write(match)
		case char > '0' && char <= '9':
			s.writeCapture(state, int(char-'1'))
		default:
			s.result.writeByte('%')
			s.result.writeByte(char)
		}
	}
}

func (s *substitution) writeCapture(state *lua.LState, number int) {
	if number >= s.pattern.Captures() {
		state.RaiseError("invalid capture index")
	}
	part, position := s.matcher.Capture(number)
	if position > 0 {
		part = strconv.Itoa(position)
	}
	s.result.write(part)
}
