package stdlib

import (
	lua "github.com/yuin/gopher-lua"
)

// Table returns the functions of the library table by name.
func Table() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"concat":   tableConcat,
		"foreach":  tableForeach,
		"foreachi": tableForeachi,
		"getn":     tableGetn,
		"insert":   tableInsert,
		"maxn":     tableMaxn,
		"remove":   tableRemove,
		"setn":     tableSetn,
		"sort":     tableSort,
	}
}

// tableConcat is concat(table [, separator [, first [, last]]]). A missing value is an error, as in
// Lua. (gopher-lua limits the indexes to those of the table.)
func tableConcat(state *lua.LState) int {
	host, table := HostOf(state), checkTable(state)
	separator := optString(state, 2, "")
	first := optInteger(state, 3, 1)
	last := optInteger(state, 4, table.Len())
	length := 0
	for i := first; i <= last; i++ {
		host.Step(1)
		value := element(table, i)
		if !lua.LVCanConvToString(value) {
			state.RaiseError("invalid value (%s) at index %d in table for 'concat'", value.Type(), i)
		}
		if s, ok := value.(lua.LString); ok {
			length += len(s)
		} else {
			length += len(value.String())
		}
		if i < last {
			length += len(separator)
		}
	}
	builder := newBuilder(state, length)
	for i := first; i <= last; i++ {
		host.Step(1)
		builder.WriteString(element(table, i).String())
		if i < last {
			builder.WriteString(separator)
		}
	}
	state.Push(lua.LString(builder.String()))
	return 1
}

func tableGetn(state *lua.LState) int {
	state.Push(integer(checkTable(state).Len()))
	return 1
}

func tableSetn(state *lua.LState) int {
	state.RaiseError("'setn' is obsolete")
	return 0
}

// tableMaxn returns the largest positive number that is a key.
func tableMaxn(state *lua.LState) int {
	host, table := HostOf(state), checkTable(state)
	largest := lua.LNumber(table.MaxN())
	for key, _ := table.Next(lua.LNil); key != lua.LNil; key, _ = table.Next(key) {
		host.Step(nextSteps)
		if number, ok := key.(lua.LNumber); ok {
			largest = max(largest, number)
		}
	}
	state.Push(largest)
	return 1
}

// tableForeach is foreach(table, function): it calls the function for each entry until a call
// returns a value other than nil.
func tableForeach(state *lua.LState) int {
	host, table, function := HostOf(state), checkTable(state), checkFunction(state)
	for key, value := table.Next(lua.LNil); key != lua.LNil; key, value = table.Next(lastKeyBefore(table, key)) {
		host.Step(nextSteps)
		if result := call(state, function, key, value); result != lua.LNil {
			state.Push(result)
			return 1
		}
	}
	return 0
}

func tableForeachi(state *lua.LState) int {
	table, function := checkTable(state), checkFunction(state)
	length := table.Len()
	for i := 1; i <= length; i++ {
		if result := call(state, function, integer(i), element(table, i)); result != lua.LNil {
			state.Push(result)
			return 1
		}
	}
	return 0
}

// call calls a function with two arguments and returns its first result.
func call(state *lua.LState, function *lua.LFunction, first, second lua.LValue) lua.LValue {
	HostOf(state).Step(callSteps)
	state.Push(function)
	state.Push(first)
	state.Push(second)
	state.Call(2, 1)
	result := state.Get(-1)
	state.Pop(1)
	return result
}

// tableInsert is insert(table, [position,] value). A position below 1 sets only that index, as in
// gopher-lua.
func tableInsert(state *lua.LState) int {
	host, table := HostOf(state), checkTable(state)
	length := table.Len()
	position := length + 1
	switch state.GetTop() {
	case 2:
	case 3:
		position = checkInteger(state, 2)
	default:
		state.RaiseError("wrong number of arguments to 'insert'")
	}
	value := state.Get(-1)
	if position < 1 || position >= lua.MaxArrayIndex {
		host.Allocate(entryBytes)
		table.RawSetH(lua.LNumber(position), value)
		return 0
	}
	// An index after the end fills all indexes before it, so they count too.
	gap := max(position-length, 0)
	host.Allocate(2 * valueBytes * (1 + gap))
	host.Step(nextSteps + (gap+max(length-position, 0))/stepEntries)
	if length == 0 {
		host.Allocate(arrayBytes)
	}
	holes := max(gap-1, 0)
	if value == lua.LNil {
		holes++
	}
	host.Holes(holes)
	if position > length {
		table.RawSetInt(position, value)
	} else {
		table.Insert(position, value)
	}
	return 0
}

// tableRemove is remove(table [, position]). Nothing is removed at a position that the table does
// not have. (gopher-lua removes the last value instead if the position is below 1.)
func tableRemove(state *lua.LState) int {
	table := checkTable(state)
	length := table.Len()
	position := optInteger(state, 2, length)
	if position < 1 || position > length {
		state.Push(lua.LNil)
		return 1
	}
	HostOf(state).Step(nextSteps + (length-position)/stepEntries)
	state.Push(table.Remove(position))
	return 1
}
