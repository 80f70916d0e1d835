package stdlib

import (
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// basePCall is pcall(function, …).
func basePCall(state *lua.LState) int {
	function := checkAny(state, 1)
	if !isCallable(state, function) {
		state.Push(lua.LFalse)
		state.Push(lua.LString("attempt to call a " + function.Type().String() + " value"))
		return 2
	}
	state.Insert(quietCall, 1)
	if err := protect(state, state.GetTop()-1, lua.MultRet); err != nil {
		return pushFailure(state, errorValue(err))
	}
	state.Insert(lua.LTrue, 1)
	return state.GetTop()
}

// baseXPCall is xpcall(function, handler). The handler is called after the function has ended, which a
// script cannot notice without the library debug.
func baseXPCall(state *lua.LState) int {
	function, handler := checkAny(state, 1), checkFunction(state)
	state.SetTop(0)
	state.Push(quietCall)
	state.Push(function)
	err := protect(state, 1, lua.MultRet)
	if err == nil {
		state.Insert(lua.LTrue, 1)
		return state.GetTop()
	}
	state.Push(quietCall)
	state.Push(handler)
	state.Push(errorValue(err))
	if err := protect(state, 2, 1); err != nil {
		return pushFailure(state, errorValue(err))
	}
	return pushFailure(state, state.Get(-1))
}

func isCallable(state *lua.LState, value lua.LValue) bool {
	return value.Type() == lua.LTFunction || state.GetMetaField(value, "__call").Type() == lua.LTFunction
}

// protect calls quietCall, which is on the stack below its arguments.
func protect(state *lua.LState, arguments, results int) error {
	host := HostOf(state)
	host.Step(callSteps)
	// If the stack is full, this call raises the error. In the protected call, the error would have
	// a traceback.
	state.Push(doNothing)
	state.Call(0, 0)
	err := state.PCall(arguments, results, nil)
	// A script cannot catch the end of its run: this call raises the error again.
	host.Step(callSteps)
	return err
}

// pushFailure pushes the results of pcall after an error.
func pushFailure(state *lua.LState, value lua.LValue) int {
	if message, ok := value.(lua.LString); ok {
		HostOf(state).Allocate(len(message))
	}
	state.Push(lua.LFalse)
	state.Push(value)
	return 2
}

var (
	// quietCall calls its first argument with the others. Errors have no traceback.
	quietCall = &lua.LFunction{IsG: true, GFunction: callQuietly}
	doNothing = &lua.LFunction{IsG: true, GFunction: func(*lua.LState) int { return 0 }}
)

func callQuietly(state *lua.LState) int {
	state.Panic = PanicWithoutTraceback // PCall restores it
	state.Call(state.GetTop()-1, lua.MultRet)
	return state.GetTop()
}

// PanicWithoutTraceback raises the error on the stack, as the field Panic of a state requires. gopher-lua
// recovers it, and writes a traceback only if there is none: it would have a line for each tail call,
// and a script can make millions of them.
func PanicWithoutTraceback(state *lua.LState) {
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: state.Get(-1), StackTrace: "none"})
}

// errorValue returns the value with which a script raised an error.
func errorValue(err error) lua.LValue {
	var raised *lua.ApiError
	if errors.As(err, &raised) && raised.Object != nil {
		return raised.Object
	}
	return lua.LString(err.Error())
}

// positionBytes is the space for the position that an error message gets.
const positionBytes = 128

// baseError is error(message [, level]). The message gets the position of the function at the level:
// 1 is the function that called error, and 2 its caller. (gopher-lua treats 2 as 1.)
func baseError(state *lua.LState) int {
	value := state.Get(1)
	level := optInteger(state, 2, 1)
	if number, ok := value.(lua.LNumber); ok {
		value = lua.LString(number.String())
	}
	if message, ok := value.(lua.LString); ok {
		HostOf(state).Allocate(len(message) + positionBytes)
		if position := positionOf(state, level); position != "" {
			value = lua.LString(position + " " + string(message))
		}
	}
	state.Error(value, 0)
	return 0
}

// maxNativeFrames is the number of functions in Go that positionOf skips.
const maxNativeFrames = 8

// positionOf returns the position of the first function at the level or above that is written in
// Lua, such as "script:3:". It is empty for level 0 and for a level that does not exist.
func positionOf(state *lua.LState, level int) string {
	if level < 1 {
		return ""
	}
	for range maxNativeFrames {
		position := state.Where(level)
		if !strings.HasPrefix(position, "[G]") {
			return position
		}
		level++
	}
	return ""
}

// baseAssert is assert(value [, message]). As in gopher-lua, the message gets the position of the
// call. (Lua does not add it, but a user needs it.)
func baseAssert(state *lua.LState) int {
	if lua.LVAsBool(checkAny(state, 1)) {
		return state.GetTop()
	}
	message := optString(state, 2, "assertion failed!")
	HostOf(state).Allocate(len(message) + positionBytes)
	state.RaiseError("%s", message)
	return 0
}

// loading is in package.loaded while a module is loaded.
var loading = &lua.LUserData{Metatable: lua.LNil}

func baseRequire(state *lua.LState) int {
	name := checkString(state, 1)
	host := HostOf(state)
	host.Step(callSteps)
	loaded := host.State().Loaded()
	if module := loaded.RawGetString(name); module == loading {
		state.RaiseError("loop or previous error loading module '%s'", name)
	} else if lua.LVAsBool(module) {
		state.Push(module)
		return 1
	}
	loader := host.Loader(name)
	if loader == nil {
		state.RaiseError("module '%s' not found: scripts can require only the modules of Karmada, such as kube", name)
	}
	host.Allocate(entryBytes)
	loaded.RawSetString(name, loading)
	state.Push(loader)
	state.Push(lua.LString(name))
	state.Call(1, 1)
	module := state.Get(-1)
	if module == lua.LNil {
		// The loader may have set the module itself.
		if module = loaded.RawGetString(name); module == loading {
			module = lua.LTrue
		}
	}
	loaded.RawSetString(name, module)
	state.Push(module)
	return 1
}
