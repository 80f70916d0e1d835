package script

import (
	"context"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const (
	// callDepth is the maximum number of nested function calls.
	callDepth = 256
	// firstRegisters, maxRegisters and registerStep bound the registers of all active functions. A
	// register has 16 bytes.
	firstRegisters = 1024
	maxRegisters   = 64 * 1024
	registerStep   = 8 * 1024
)

// sandbox is a Lua state together with the values of the current call. Sandboxes are pooled, but only the
// empty state and the libraries are kept after a call.
type sandbox struct {
	engine *Engine
	state  *lua.LState
	// libraries are the tables of functions by the name of the library, and overlays are the metatables
	// of the tables that scripts get instead.
	libraries, overlays map[string]*lua.LTable
	// globals is the metatable of the global variables of a call.
	globals *lua.LTable
	// stringMethods is the metatable of strings.
	stringMethods *lua.LTable
	// lazy is the metatable of lazily converted tables.
	lazy *lua.LTable
	// quietCall is the function callQuietly.
	quietCall *lua.LFunction

	run
}

// run holds the values of a call.
type run struct {
	ctx context.Context //nolint:containedctx // It lives as long as one call.
	// environment holds the global variables.
	environment *lua.LTable
	// loaded holds the results of required modules.
	loaded *lua.LTable
	// nodes holds the argument values that the tables represent.
	nodes map[*lua.LTable]*node
	// integers holds the integers that the script has read and that a Lua number may not represent
	// exactly, by their Lua number. If several integers have the same number, it holds the rounded one.
	integers map[float64]any
	// stringBytes is the total length of the strings that the script has created.
	stringBytes int
}

func (e *Engine) newSandbox() *sandbox {
	s := &sandbox{engine: e, libraries: map[string]*lua.LTable{}, overlays: map[string]*lua.LTable{}, stringMethods: newTable()}
	s.state = lua.NewState(lua.Options{
		CallStackSize: callDepth, RegistrySize: firstRegisters, RegistryMaxSize: maxRegisters, RegistryGrowStep: registerStep,
		SkipOpenLibs: true,
	})
	s.quietCall = s.state.NewFunction(callQuietly)
	s.openLibraries()
	s.lazy = newTable()
	for name, function := range map[string]lua.LGFunction{"__index": s.readLazy, "__newindex": s.writeLazy, "__len": s.lazyLength} {
		s.lazy.RawSetString(name, s.state.NewFunction(function))
	}
	s.state.SetMetatable(lua.LString(""), s.stringMethods)
	return s
}

// invocation describes a call of a script's function.
type invocation struct {
	script    *lua.FunctionProto
	function  string
	arguments []any
	// results is the number of results, at most 2. read must not keep them.
	results int
	read    func(*sandbox, []lua.LValue) error
}

// call runs the script and then its function. The arguments have the types that unstructured objects
// contain. A nil list is nil in the script.
func (s *sandbox) call(ctx context.Context, call invocation) error {
	timed, cancel := context.WithTimeout(ctx, s.engine.timeout)
	defer cancel()
	s.run = run{ctx: timed, environment: s.state.CreateTable(0, 1), loaded: newTable(), nodes: map[*lua.LTable]*node{}}
	s.environment.Metatable = s.globals
	s.stringMethods.RawSetString("__index", s.libraries["string"])
	s.state.SetContext(timed)
	err := s.execute(call)
	if err != nil && timed.Err() != nil {
		return s.endOfTime(ctx, err)
	}
	return err
}

func (s *sandbox) execute(call invocation) error {
	s.state.Push(s.quietCall)
	s.state.Push(s.function(call.script))
	if err := s.state.PCall(1, 0, nil); err != nil {
		return explain(err)
	}
	function := s.environment.RawGetString(call.function)
	if function == lua.LNil {
		return fmt.Errorf("not found function %s: define it as a global function", call.function)
	}
	if function.Type() != lua.LTFunction {
		return fmt.Errorf("%s is a %s, not a function", call.function, function.Type())
	}
	s.state.Push(s.quietCall)
	s.state.Push(function)
	for _, argument := range call.arguments {
		s.state.Push(s.toLua(argument))
	}
	if err := s.state.PCall(1+len(call.arguments), call.results, nil); err != nil {
		return explain(err)
	}
	var results [2]lua.LValue
	for i := range call.results {
		results[i] = s.state.Get(i - call.results)
	}
	return call.read(s, results[:call.results])
}

// function returns the main function of a script or a module.
func (s *sandbox) function(main *lua.FunctionProto) *lua.LFunction {
	return &lua.LFunction{Proto: main, Env: s.environment}
}

// release returns the sandbox to the pool. It must not be called after an error, because the state may
// then still refer to the call's values.
func (s *sandbox) release() {
	s.state.SetTop(0)
	s.run = run{}
	s.engine.pool.Put(s)
}

// timeoutError reports that a call exceeded its timeout.
type timeoutError struct{ timeout time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the call exceeded the time limit of %s: simplify the script", e.timeout)
}

// endOfTime returns the reason why the call's context ended, with the location of err.
func (s *sandbox) endOfTime(parent context.Context, err error) error {
	place := ""
	var placed *placedError
	if errors.As(err, &placed) {
		place = placed.place
	}
	if parent.Err() != nil {
		return &placedError{place: place, cause: fmt.Errorf("the call was canceled: %w", context.Cause(parent))}
	}
	return &placedError{place: place, cause: &timeoutError{timeout: s.engine.timeout}}
}
