package stdlib

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// String returns the functions of the library string by name. Their characters are bytes, and
// upper and lower case exist for ASCII letters only.
func String() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"byte":    stringByte,
		"char":    stringChar,
		"find":    stringFind,
		"format":  stringFormat,
		"gfind":   stringGmatch, // the name of gmatch in Lua 5.0
		"gmatch":  stringGmatch,
		"gsub":    stringGsub,
		"len":     stringLen,
		"lower":   stringLower,
		"match":   stringMatch,
		"rep":     stringRep,
		"reverse": stringReverse,
		"sub":     stringSub,
		"upper":   stringUpper,
	}
}

// pushPart counts and pushes a string that is a part of another one.
func pushPart(state *lua.LState, host Host, part string) {
	host.Allocate(valueBytes)
	state.Push(lua.LString(part))
}

// absolute converts a position that counts from the end if it is negative.
func absolute(position, length int) int {
	if position < 0 {
		return max(position+length+1, 0)
	}
	return position
}

// rangeOf returns the part of a string of the given length between two positions, as offsets.
func rangeOf(first, last, length int) (start, end int) {
	start = max(absolute(first, length), 1) - 1
	end = min(absolute(last, length), length)
	return min(start, end), end
}

func stringByte(state *lua.LState) int {
	s := checkString(state, 1)
	first := optInteger(state, 2, 1)
	last := optInteger(state, 3, first)
	start, end := rangeOf(first, last, len(s))
	checkResults(state, end-start)
	HostOf(state).Step(1 + (end-start)/stepEntries)
	for i := start; i < end; i++ {
		state.Push(integer(int(s[i])))
	}
	return end - start
}

func stringChar(state *lua.LState) int {
	host, count := HostOf(state), state.GetTop()
	host.String(2 * count)
	host.Step(1 + count/stepEntries)
	chars := make([]byte, count)
	for i := range chars {
		code := checkInteger(state, i+1)
		if code < 0 || code > 255 {
			state.ArgError(i+1, "invalid value, expected 0 to 255")
		}
		chars[i] = byte(code)
	}
	state.Push(lua.LString(chars))
	return 1
}

func stringLen(state *lua.LState) int {
	state.Push(integer(len(checkString(state, 1))))
	return 1
}

func stringLower(state *lua.LState) int { return mapBytes(state, toLower) }
func stringUpper(state *lua.LState) int { return mapBytes(state, toUpper) }

func toLower(char byte) byte {
	if char >= 'A' && char <= 'Z' {
		return char - 'A' + 'a'
	}
	return char
}

func toUpper(char byte) byte {
	if char >= 'a' && char <= 'z' {
		return char - 'a' + 'A'
	}
	return char
}

func mapBytes(state *lua.LState, convert func(char byte) byte) int {
	s := checkString(state, 1)
	builder := newBuilder(state, len(s))
	for i := range len(s) {
		builder.WriteByte(convert(s[i]))
	}
	state.Push(lua.LString(builder.String()))
	return 1
}

// newBuilder counts a string of the given length and returns a builder for it.
func newBuilder(state *lua.LState, length int) *strings.Builder {
	host := HostOf(state)
	host.String(length)
	host.Step(1 + length/stepBytes)
	builder := &strings.Builder{}
	builder.Grow(length)
	return builder
}

func stringReverse(state *lua.LState) int {
	s := checkString(state, 1)
	builder := newBuilder(state, len(s))
	for i := len(s) - 1; i >= 0; i-- {
		builder.WriteByte(s[i])
	}
	state.Push(lua.LString(builder.String()))
	return 1
}

func stringRep(state *lua.LState) int {
	s, count := checkString(state, 1), checkInteger(state, 2)
	if count <= 0 || s == "" {
		state.Push(lua.LString(""))
		return 1
	}
	length := maxInteger
	if count <= maxInteger/len(s) {
		length = count * len(s)
	}
	builder := newBuilder(state, length)
	for range count {
		builder.WriteString(s)
	}
	state.Push(lua.LString(builder.String()))
	return 1
}

func stringSub(state *lua.LState) int {
	s := checkString(state, 1)
	start, end := rangeOf(checkInteger(state, 2), optInteger(state, 3, -1), len(s))
	pushPart(state, HostOf(state), s[start:end])
	return 1
}
