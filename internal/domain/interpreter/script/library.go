package script

import (
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/kubelib"
	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
)

// kubeModule is the name of the module with calculations for Kubernetes.
const kubeModule = "kube"

// makeLibraries creates the functions that all states share. No script can change the tables in
// which they are: a script gets an overlay of them.
func (e *Engine) makeLibraries() {
	base := tableOf(stdlib.Base(), stdlib.BaseValues())
	base.Metatable = metatable(native(makeLibrary))
	e.globals = metatable(base)
	e.lazy = metatable(native(readLazyField))
	e.entry = native(enter)
	e.kubeLoader = native(loadKube)
	e.libraries = map[string]*lua.LTable{
		"string":   tableOf(stdlib.String(), nil),
		"table":    tableOf(stdlib.Table(), nil),
		"math":     tableOf(stdlib.Math(), stdlib.MathValues()),
		"os":       tableOf(stdlib.OS(), nil),
		kubeModule: tableOf(kubelib.Functions(e.options.ResourceQuotaEstimate), nil),
	}
	e.overlays = map[string]*lua.LTable{}
	for name, library := range e.libraries {
		e.overlays[name] = metatable(library)
	}
	e.hidden = map[string]*lua.Upvalue{}
	for name, function := range hiddenFunctions() {
		upvalue := &lua.Upvalue{}
		upvalue.Close()
		upvalue.SetValue(native(function))
		e.hidden[name] = upvalue
	}
}

// native returns a function in Go. It has no environment and no upvalues, so states can share it.
func native(function lua.LGFunction) *lua.LFunction {
	return &lua.LFunction{IsG: true, GFunction: function, Env: newTable()}
}

func newTable() *lua.LTable { return &lua.LTable{Metatable: lua.LNil} }

// metatable returns a metatable for tables whose missing fields are in index.
func metatable(index lua.LValue) *lua.LTable {
	table := newTable()
	table.RawSetString("__index", index)
	return table
}

// tableOf returns a table with functions and values, in the order of their names.
func tableOf(functions map[string]lua.LGFunction, values map[string]lua.LValue) *lua.LTable {
	fields := maps.Clone(values)
	if fields == nil {
		fields = map[string]lua.LValue{}
	}
	for name, function := range functions {
		fields[name] = native(function)
	}
	table := newTable()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		table.RawSetString(name, fields[name])
	}
	return table
}

// makeLibrary reads a global variable that is neither set nor a function. If it is a library, the
// run gets an overlay of the library.
func makeLibrary(state *lua.LState) int {
	s := sandboxOf(state)
	name, _ := state.Get(2).(lua.LString)
	library := lua.LNil
	switch name {
	case "_G":
		library = s.environment
	case "package":
		s.Allocate(plainBytes)
		table := newTable()
		table.RawSetString("loaded", s.State().Loaded())
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
	s.Allocate(plainBytes)
	table := newTable()
	table.Metatable = s.engine.overlays[name]
	s.nodes[table] = &node{library: s.engine.libraries[name]}
	if name == "string" {
		// A function that the script adds to the library is also a method of strings.
		s.stringMethods.RawSetString("__index", table)
	}
	return table
}

// loadKube creates the module kube.
func loadKube(state *lua.LState) int {
	state.Push(sandboxOf(state).overlay(kubeModule))
	return 1
}

// Loader implements stdlib.Host.
func (s *sandbox) Loader(module string) *lua.LFunction {
	if module == kubeModule {
		return s.engine.kubeLoader
	}
	if script, ok := s.engine.modules[module]; ok {
		s.noticeString(script.longest)
		return script.function(s.environment)
	}
	return nil
}
