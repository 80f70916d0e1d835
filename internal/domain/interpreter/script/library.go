package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// kubeModule is the name of the module with calculations for Kubernetes.
const kubeModule = "kube"

// unsupportedFunctions could change a script or its environment.
var unsupportedFunctions = []string{
	"collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "module",
	"newproxy", "rawequal", "rawget", "rawset", "setfenv", "setmetatable",
}

// openLibraries creates the functions that scripts can call: most of gopher-lua's, and those of this
// package where gopher-lua's have no limits or do more than a script may.
func (s *sandbox) openLibraries() {
	global := s.state.G.Global
	lua.OpenBase(s.state)
	for name, open := range map[string]lua.LGFunction{
		"string": lua.OpenString, "table": lua.OpenTable, "math": lua.OpenMath, "os": lua.OpenOs,
	} {
		open(s.state)
		s.libraries[name] = global.RawGetString(name).(*lua.LTable)
		global.RawSetString(name, lua.LNil)
	}
	s.state.SetTop(0)
	for _, name := range []string{"_G", "_printregs"} {
		global.RawSetString(name, lua.LNil)
	}
	for _, name := range unsupportedFunctions {
		global.RawSetString(name, s.state.NewFunction(func(state *lua.LState) int {
			state.RaiseError("call function %s is not supported in a script: it could change the script or its environment", name)
			return 0
		}))
	}
	for _, name := range []string{"ipairs", "next", "pairs", "unpack"} {
		runBefore(global.RawGetString(name), s.loadArgument)
	}
	runBefore(global.RawGetString("pcall"), func(state *lua.LState) { state.Insert(s.quietCall, 1) })
	for _, name := range []string{"__index", "dump"} {
		s.libraries["string"].RawSetString(name, lua.LNil)
	}
	s.libraries["table"].ForEach(func(_, function lua.LValue) { runBefore(function, s.loadArgument) })
	s.libraries[kubeModule] = newTable()
	s.libraries["os"] = s.clockFunctions(s.libraries["os"])

	s.state.SetFuncs(global, map[string]lua.LGFunction{concatFunction: s.concat, "print": s.print, "require": s.require})
	format := s.libraries["string"].RawGetString("format").(*lua.LFunction).GFunction
	s.state.SetFuncs(s.libraries["string"], map[string]lua.LGFunction{
		"find": s.find, "format": s.boundedFormat(format), "gfind": s.gmatch, "gmatch": s.gmatch, "gsub": s.gsub,
		"match": s.match, "rep": s.repeat,
	})
	s.state.SetFuncs(s.libraries["table"], map[string]lua.LGFunction{"concat": s.concatTable})
	s.state.SetFuncs(s.libraries[kubeModule], s.kubeFunctions())
	global.Metatable = metatable(s.state.NewFunction(s.readLibrary))
	s.globals = metatable(global)
	for name, library := range s.libraries {
		s.overlays[name] = metatable(library)
	}
}

// runBefore changes a function of gopher-lua so that it calls prepare first.
func runBefore(function lua.LValue, prepare func(*lua.LState)) {
	f := function.(*lua.LFunction)
	call := f.GFunction
	f.GFunction = func(state *lua.LState) int {
		prepare(state)
		return call(state)
	}
}

// loadArgument loads the first argument of a function, because gopher-lua's functions read tables
// without their metatable.
func (s *sandbox) loadArgument(state *lua.LState) {
	if table, ok := state.Get(1).(*lua.LTable); ok {
		s.load(table)
	}
}

// callQuietly calls its first argument with the others. Errors have no traceback: it would have a line for
// each tail call, and a script can make millions of them.
func callQuietly(state *lua.LState) int {
	// PCall restores the field.
	state.Panic = func(state *lua.LState) {
		panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: state.Get(-1), StackTrace: "none"})
	}
	state.Call(state.GetTop()-1, lua.MultRet)
	return state.GetTop()
}

// clockFunctions returns the functions of the library os that scripts can call. They use the engine's
// clock.
func (s *sandbox) clockFunctions(library *lua.LTable) *lua.LTable {
	timeOf := library.RawGetString("time").(*lua.LFunction).GFunction
	date := library.RawGetString("date").(*lua.LFunction).GFunction
	now := func() lua.LNumber { return lua.LNumber(s.engine.options.Now().Unix()) }
	return s.state.SetFuncs(newTable(), map[string]lua.LGFunction{
		"time": func(state *lua.LState) int {
			if state.Get(1) == lua.LNil {
				state.Push(now())
				return 1
			}
			s.loadArgument(state)
			return timeOf(state)
		},
		"date": func(state *lua.LState) int {
			if state.Get(2) == lua.LNil {
				format := state.OptString(1, "%c")
				state.SetTop(0)
				state.Push(lua.LString(format))
				state.Push(now())
			}
			return date(state)
		},
	})
}

func newTable() *lua.LTable { return &lua.LTable{Metatable: lua.LNil} }

// metatable returns a metatable for tables whose missing fields are in index.
func metatable(index lua.LValue) *lua.LTable {
	table := newTable()
	table.RawSetString("__index", index)
	return table
}

// readLibrary reads a global variable that is neither set nor a function. If it is a library, the call
// gets an overlay of the library.
func (s *sandbox) readLibrary(state *lua.LState) int {
	name, _ := state.Get(2).(lua.LString)
	library := lua.LNil
	switch name {
	case "_G":
		library = s.environment
	case "package":
		table := newTable()
		table.RawSetString("loaded", s.loaded)
		library = table
	case "string", "table", "math", "os":
		library = s.overlay(string(name))
	}
	if library != lua.LNil {
		s.environment.RawSetString(string(name), library)
	}
	state.Push(library)
	return 1
}

// overlay returns an empty table whose missing fields are those of a library.
func (s *sandbox) overlay(name string) *lua.LTable {
	table := newTable()
	table.Metatable = s.overlays[name]
	if name == "string" {
		// A function that the script adds to the library is also a method of strings.
		s.stringMethods.RawSetString("__index", table)
	}
	return table
}

// require is require(name).
func (s *sandbox) require(state *lua.LState) int {
	name := state.CheckString(1)
	if module := s.loaded.RawGetString(name); module != lua.LNil {
		state.Push(module)
		return 1
	}
	var module lua.LValue
	if main, ok := s.engine.modules[name]; ok {
		state.Push(s.function(main))
		state.Call(0, 1)
		if module = state.Get(-1); module == lua.LNil {
			module = lua.LTrue
		}
	} else if name == kubeModule {
		module = s.overlay(kubeModule)
	} else {
		state.RaiseError("module '%s' not found: scripts can require only the modules of Karmada, such as kube", name)
	}
	s.loaded.RawSetString(name, module)
	state.Push(module)
	return 1
}

func (s *sandbox) print(state *lua.LState) int {
	if s.engine.options.Print == nil {
		return 0
	}
	var texts []string
	for i := 1; i <= state.GetTop(); i++ {
		texts = append(texts, state.ToStringMeta(state.Get(i)).String())
	}
	s.engine.options.Print(strings.Join(texts, "\t"))
	return 0
}
