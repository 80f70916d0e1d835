package script

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/guard"
)

// Sizes in bytes of what the hidden functions create, as upper limits for what Go allocates.
const (
	tableBytes = 700
	// plainBytes is for a table without a hint of its size: its map for 32 strings is created when the
	// first one is set.
	plainBytes   = 3000
	entryBytes   = 48
	fieldBytes   = 200
	closureBytes = 80
	upvalueBytes = 72
	numberBytes  = 24
	// firstEntryBytes is for the first entry of a list: its array has room for 32.
	firstEntryBytes = 512
	// holesPerStep is the number of empty entries that the virtual machine skips in one step.
	holesPerStep = 4096
	// capturedPerStep is the number of captured variables that the virtual machine compares in one
	// step.
	capturedPerStep = 2048
	// maxListKey is the first number that the virtual machine does not store in an array.
	maxListKey = 67108864
)

// hiddenFunctions are the functions that compiled scripts call instead of instructions that allocate.
func hiddenFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		guard.Concat:    concat,
		guard.Set:       setField,
		guard.Length:    length,
		guard.List:      newList,
		guard.Charge:    chargeTable,
		guard.Entries:   setEntries,
		guard.Closure:   chargeClosure,
		guard.Arguments: newArguments,
	}
}

func concat(state *lua.LState) int {
	s, n, total := sandboxOf(state), state.GetTop(), 0
	for i := 1; i <= n; i++ {
		switch value := state.Get(i).(type) {
		case lua.LString:
			total += len(value)
		case lua.LNumber:
			total += numberBytes
		default:
			state.RaiseError("attempt to concatenate a %s value", value.Type())
		}
	}
	s.String(total)
	var text strings.Builder
	text.Grow(total)
	for i := 1; i <= n; i++ {
		text.WriteString(state.Get(i).String())
	}
	state.Push(lua.LString(text.String()))
	return 1
}

func setField(state *lua.LState) int {
	s, key, value := sandboxOf(state), state.Get(2), state.Get(3)
	table, ok := state.Get(1).(*lua.LTable)
	if !ok {
		state.RaiseError("attempt to index a %s value with key '%s'", state.Get(1).Type(), keyText(key))
	}
	s.set(table, key, value)
	return 0
}

// set assigns a field of a table, after it counted the memory for it.
func (s *sandbox) set(table *lua.LTable, key, value lua.LValue) {
	if table.Metatable != lua.LNil && s.setLazy(table, key, value) {
		return
	}
	switch key := key.(type) {
	case lua.LString:
		if value != lua.LNil && table.RawGetString(string(key)) == lua.LNil {
			s.Allocate(fieldBytes)
		}
		table.RawSetString(string(key), value)
	case lua.LNumber:
		s.setNumber(table, key, value)
	case *lua.LNilType:
		s.state.RaiseError("the key of a table must not be nil")
	default:
		s.Allocate(fieldBytes)
		table.RawSetH(key, value)
	}
}

func (s *sandbox) setNumber(table *lua.LTable, key lua.LNumber, value lua.LValue) {
	index := int(key)
	if math.IsNaN(float64(key)) {
		s.state.RaiseError("the key of a table must not be NaN")
	}
	if lua.LNumber(index) != key || index < 1 || index >= maxListKey {
		s.Allocate(fieldBytes)
		table.RawSetH(key, value)
		return
	}
	switch {
	case value == lua.LNil:
		if table.RawGetInt(index) == lua.LNil {
			return
		}
		s.holes++
	case table.RawGetInt(index) == lua.LNil:
		end := s.length(table)
		bytes := entryBytes * max(1, index-end)
		if end == 0 {
			bytes += firstEntryBytes
		}
		s.Allocate(bytes)
		s.holes += max(0, index-end-1)
	}
	table.RawSetInt(index, value)
}

// Holes implements stdlib.Host.
func (s *sandbox) Holes(n int) { s.holes += n }

// length returns the number of entries of a table, after it counted the work for it.
func (s *sandbox) length(table *lua.LTable) int {
	s.Step(1 + s.holes/holesPerStep)
	return table.Len()
}

func length(state *lua.LState) int {
	s, n := sandboxOf(state), 0
	switch value := state.Get(1).(type) {
	case lua.LString:
		n = len(value)
	case *lua.LTable:
		if lazy := s.unloaded(value); lazy != nil && lazy.list != nil {
			n = lazy.length()
			break
		}
		n = s.length(value)
	default:
		state.RaiseError("attempt to get the length of a %s value", value.Type())
	}
	state.Push(s.engine.number(float64(n)))
	return 1
}

func newList(state *lua.LState) int {
	s, n := sandboxOf(state), state.GetTop()
	s.Allocate(tableBytes + entryBytes*n)
	// With room for a field, the first field does not create a map for 32 of them.
	table := state.CreateTable(n, 1)
	for i := 1; i <= n; i++ {
		value := state.Get(i)
		if value == lua.LNil {
			s.holes++
		}
		table.RawSetInt(i, value)
	}
	state.Push(table)
	return 1
}

func chargeTable(state *lua.LState) int {
	s := sandboxOf(state)
	table, bytes := state.Get(1).(*lua.LTable), state.ToInt(2)
	s.Allocate(bytes + entryBytes*s.length(table))
	state.Push(table)
	return 1
}

func setEntries(state *lua.LState) int {
	s := sandboxOf(state)
	table := state.Get(1).(*lua.LTable)
	for i := 2; i <= state.GetTop(); i += 2 {
		s.set(table, state.Get(i), state.Get(i+1))
	}
	state.Push(table)
	return 1
}

func chargeClosure(state *lua.LState) int {
	s := sandboxOf(state)
	function := state.Get(1).(*lua.LFunction)
	upvalues := len(function.Upvalues)
	s.Allocate(closureBytes + upvalueBytes*upvalues)
	// The virtual machine searches each variable in a list of all captured variables of the active
	// functions.
	s.captured = min(s.captured+upvalues, maxCaptured)
	s.Step(1 + upvalues*s.captured/capturedPerStep)
	return 1
}

func newArguments(state *lua.LState) int {
	n := state.GetTop()
	newList(state)
	state.Get(-1).(*lua.LTable).RawSetString("n", lua.LNumber(n))
	return 1
}

// keyText returns a key for an error.
func keyText(key lua.LValue) string {
	const maxKey = 100
	text := key.String()
	if len(text) > maxKey {
		return text[:maxKey] + "…"
	}
	return text
}
