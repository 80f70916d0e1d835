package stdlib

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// maxInteger bounds the integers that functions calculate with. All integers up to it are exact as
// numbers of Lua, and sums and differences of two of them do not overflow.
const maxInteger = 1 << 53

// integerOf cuts off the fraction of a number. It returns the nearest limit for a number beyond
// maxInteger, and 0 for NaN.
func integerOf(number float64) int {
	switch {
	case math.IsNaN(number):
		return 0
	case number >= maxInteger:
		return maxInteger
	case number <= -maxInteger:
		return -maxInteger
	default:
		return int(number)
	}
}

// The functions check… return the argument with the number n, which counts from 1. They raise an
// error if it is absent or has a wrong type. The functions opt… return a default if it is absent or
// nil. As in Lua, a number is accepted as a string, and a string with a number as a number.

func checkAny(state *lua.LState, n int) lua.LValue {
	if n > state.GetTop() {
		state.ArgError(n, "value expected")
	}
	return state.Get(n)
}

func raiseTypeError(state *lua.LState, n int, expected string) {
	got := "no value"
	if n <= state.GetTop() {
		got = state.Get(n).Type().String()
	}
	state.ArgError(n, expected+" expected, got "+got)
}

func checkString(state *lua.LState, n int) string {
	switch value := state.Get(n).(type) {
	case lua.LString:
		return string(value)
	case lua.LNumber:
		return value.String()
	}
	raiseTypeError(state, n, "string")
	return ""
}

func optString(state *lua.LState, n int, value string) string {
	if state.Get(n) == lua.LNil {
		return value
	}
	return checkString(state, n)
}

func checkNumber(state *lua.LState, n int) float64 {
	switch value := state.Get(n).(type) {
	case lua.LNumber:
		return float64(value)
	case lua.LString:
		HostOf(state).Step(len(value) / stepBytes)
		if number, ok := parseNumber(string(value)); ok {
			return number
		}
	}
	raiseTypeError(state, n, "number")
	return 0
}

func checkInteger(state *lua.LState, n int) int {
	return integerOf(checkNumber(state, n))
}

func optInteger(state *lua.LState, n, value int) int {
	if state.Get(n) == lua.LNil {
		return value
	}
	return checkInteger(state, n)
}

// checkTable returns the first argument, with all its entries.
func checkTable(state *lua.LState) *lua.LTable {
	table := checkUnloadedTable(state)
	HostOf(state).Load(table)
	return table
}

// checkUnloadedTable returns the first argument. Its entries may not be loaded.
func checkUnloadedTable(state *lua.LState) *lua.LTable {
	table, ok := state.Get(1).(*lua.LTable)
	if !ok {
		raiseTypeError(state, 1, "table")
	}
	return table
}

// checkFunction returns the second argument.
func checkFunction(state *lua.LState) *lua.LFunction {
	function, ok := state.Get(2).(*lua.LFunction)
	if !ok {
		raiseTypeError(state, 2, "function")
	}
	return function
}
