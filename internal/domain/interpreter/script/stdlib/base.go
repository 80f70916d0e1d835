package stdlib

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// Base returns the global functions by name. The functions that scripts must not call raise an
// error.
func Base() map[string]lua.LGFunction {
	functions := map[string]lua.LGFunction{
		"assert":   baseAssert,
		"error":    baseError,
		"ipairs":   baseIpairs,
		"next":     baseNext,
		"pairs":    basePairs,
		"pcall":    basePCall,
		"print":    basePrint,
		"require":  baseRequire,
		"select":   baseSelect,
		"tonumber": baseToNumber,
		"tostring": baseToString,
		"type":     baseType,
		"unpack":   baseUnpack,
		"xpcall":   baseXPCall,
	}
	for _, name := range []string{
		"collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "module",
		"newproxy", "rawequal", "rawget", "rawset", "setfenv", "setmetatable",
	} {
		functions[name] = unsupported(name)
	}
	return functions
}

// BaseValues returns the global variables that are not functions, by name. The variable _G is not
// one of them, because every run has its own.
func BaseValues() map[string]lua.LValue {
	return map[string]lua.LValue{"_VERSION": lua.LString("Lua 5.1")}
}

func unsupported(name string) lua.LGFunction {
	return func(state *lua.LState) int {
		state.RaiseError("call function %s is not supported in a script: it could change the script or its environment", name)
		return 0
	}
}

// typeNames holds the names of types as values of Lua, by type.
var typeNames = newTypeNames()

func newTypeNames() map[lua.LValueType]lua.LValue {
	names := map[lua.LValueType]lua.LValue{}
	for valueType := lua.LTNil; valueType <= lua.LTChannel; valueType++ {
		names[valueType] = lua.LString(valueType.String())
	}
	return names
}

func baseType(state *lua.LState) int {
	state.Push(typeNames[checkAny(state, 1).Type()])
	return 1
}

// nextEntry is the function next, as pairs returns it. It has no environment, which only functions
// that are written in Lua need, so all Lua states share it.
var nextEntry = &lua.LFunction{IsG: true, GFunction: baseNext}

// nextElement is the iterator of ipairs.
var nextElement = &lua.LFunction{IsG: true, GFunction: baseNextElement}

func basePairs(state *lua.LState) int {
	state.Push(nextEntry)
	state.Push(checkTable(state))
	state.Push(lua.LNil)
	return 3
}

// baseNext is next(table [, key]). It accepts the key of an entry that was removed during the
// traversal. After an unknown key, the traversal ends early or repeats entries. (Lua raises an
// error.)
func baseNext(state *lua.LState) int {
	table := checkUnloadedTable(state)
	host, key := HostOf(state), state.Get(2)
	host.Step(nextSteps)
	if key == lua.LNil {
		host.Load(table)
	} else {
		key = lastKeyBefore(table, key)
	}
	key, value := table.Next(key)
	if key == lua.LNil {
		state.Push(lua.LNil)
		return 1
	}
	state.Push(key)
	state.Push(value)
	return 2
}

// lastKeyBefore returns the key itself, unless it is an index after the end of the array, which may
// have become shorter during the traversal. Then it returns the last index of the array, because
// LTable.Next would skip the first entry that is not in the array.
func lastKeyBefore(table *lua.LTable, key lua.LValue) lua.LValue {
	number, ok := key.(lua.LNumber)
	if !ok || number < 1 || number >= lua.LNumber(lua.MaxArrayIndex) {
		return key
	}
	index := int(number)
	if lua.LNumber(index) != number || table.RawGetInt(index+1) != lua.LNil {
		return key
	}
	length := table.MaxN()
	switch {
	case length == 0:
		return lua.LNil
	case index > length:
		return integer(length)
	default:
		return key
	}
}

func baseIpairs(state *lua.LState) int {
	state.Push(nextElement)
	state.Push(checkTable(state))
	state.Push(integer(0))
	return 3
}

func baseNextElement(state *lua.LState) int {
	table := checkUnloadedTable(state)
	HostOf(state).Step(1)
	index := checkInteger(state, 2) + 1
	value := table.RawGetInt(index)
	if value == lua.LNil {
		return 0
	}
	state.Push(integer(index))
	state.Push(value)
	return 2
}

func baseSelect(state *lua.LState) int {
	count := state.GetTop() - 1
	if state.Get(1) == lua.LString("#") {
		state.Push(integer(count))
		return 1
	}
	index := checkInteger(state, 1)
	if index < 0 {
		index += count + 1
	}
	if index < 1 {
		state.ArgError(1, "index out of range")
	}
	HostOf(state).Step(max(count-index, 0) / stepEntries)
	return max(count-index+1, 0)
}

func baseUnpack(state *lua.LState) int {
	table := checkTable(state)
	first := optInteger(state, 2, 1)
	last := optInteger(state, 3, table.Len())
	return pushElements(state, table, first, last)
}

// pushElements pushes the values of a table at the indexes from first to last. It returns their
// number.
func pushElements(state *lua.LState, table *lua.LTable, first, last int) int {
	if first > last {
		return 0
	}
	count := last - first + 1
	checkResults(state, count)
	HostOf(state).Step(1 + count/stepEntries)
	for i := first; i <= last; i++ {
		state.Push(element(table, i))
	}
	return count
}

// checkResults raises an error if a function cannot return count results.
func checkResults(state *lua.LState, count int) {
	if count > maxResults {
		state.RaiseError("too many results: %d, the limit is %d", count, maxResults)
	}
}

// element returns the value of a table at an index.
func element(table *lua.LTable, index int) lua.LValue {
	if index >= 1 && index < lua.MaxArrayIndex {
		return table.RawGetInt(index)
	}
	return table.RawGetH(lua.LNumber(index))
}

func baseToString(state *lua.LState) int {
	value := checkAny(state, 1)
	if _, ok := value.(lua.LString); ok {
		state.Push(value)
		return 1
	}
	s := toString(HostOf(state), value)
	state.Push(lua.LString(s))
	return 1
}

// toString returns the text of a value. Tables and functions have a number instead of an address, so
// that the result of a script depends on its arguments only.
func toString(host Host, value lua.LValue) string {
	switch value := value.(type) {
	case lua.LString:
		return string(value)
	case *lua.LNilType, lua.LBool, lua.LNumber:
		host.Allocate(valueBytes * 2)
		return value.String()
	default:
		host.Allocate(entryBytes)
		return fmt.Sprintf("%s: 0x%08x", value.Type(), host.State().identity(value))
	}
}

func basePrint(state *lua.LState) int {
	host := HostOf(state)
	line := text{host: host}
	for i := 1; i <= state.GetTop(); i++ {
		if i > 1 {
			line.writeByte('\t')
		}
		line.write(toString(host, state.Get(i)))
	}
	host.Print(line.finish())
	return 0
}
