package script

import (
	"context"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
)

const (
	// callDepth is the maximum number of nested calls in a script.
	callDepth = 256
	// firstRegisters, maxRegisters and registerStep bound the registers of all active functions, each
	// of 16 bytes.
	firstRegisters = 1024
	maxRegisters   = 64 * 1024
	registerStep   = 8 * 1024
	// maxReused is the maximum number of lazily converted tables whose memory is kept for later runs.
	maxReused = 512
	// maxPooled is the maximum number of bytes that a run may have allocated if its state is pooled.
	// The state still refers to functions of the run, which refer to its variables.
	maxPooled = 1 << 20
)

// sandbox is a Lua state with everything that belongs to one run in it. Sandboxes are pooled. The
// only things that survive a run are the empty state and unused memory.
type sandbox struct {
	budget
	engine *Engine
	state  *lua.LState

	// environment holds the global variables of the run.
	environment *lua.LTable
	// stringMethods is the metatable of strings.
	stringMethods *lua.LTable
	libraries     stdlib.State
	lazyTables
	integers integers
	// holes is the number of entries of lists that were set to nil. It limits the time of the
	// virtual machine to find the end of a list.
	holes int

	call invocation
}

// invocation is the function that a run calls.
type invocation struct {
	program   *program
	function  string
	arguments []any
	results   int
}

// newSandbox returns an idle sandbox. Each run sets its own parent context.
//
//nolint:contextcheck,nolintlint // The sandbox is the context of its state. The callers would be reported.
func (e *Engine) newSandbox() *sandbox {
	s := &sandbox{engine: e}
	s.limits, s.now, s.closed = &e.limits, e.options.Now, e.closed
	s.state = lua.NewState(lua.Options{
		CallStackSize: callDepth, RegistrySize: firstRegisters, RegistryMaxSize: maxRegisters, RegistryGrowStep: registerStep,
		SkipOpenLibs: true,
	})
	s.stringMethods = s.state.CreateTable(0, 1)
	s.state.SetMetatable(lua.LString(""), s.stringMethods)
	s.state.SetContext(s)
	s.nodes = map[*lua.LTable]*node{}
	return s
}

// sandboxOf returns the sandbox of a Lua state of this package.
func sandboxOf(state *lua.LState) *sandbox { return state.Context().(*sandbox) }

// prepare starts a run with fresh global variables.
func (s *sandbox) prepare(ctx context.Context) {
	s.start(ctx, s.now())
	s.environment = s.state.CreateTable(0, 1)
	s.environment.Metatable = s.engine.globals
	s.stringMethods.RawSetString("__index", s.engine.libraries["string"])
}

// release returns the sandbox to the pool, without what belongs to the run.
func (s *sandbox) release() {
	if s.allocated > maxPooled {
		return
	}
	s.state.SetTop(0)
	s.parent, s.environment, s.call = nil, nil, invocation{}
	s.libraries.Reset()
	s.integers.reset()
	s.holes = 0
	s.forget()
	s.engine.pool.Put(s)
}

// execute runs the script and its function. The results are on the stack of the state.
func (s *sandbox) execute(call invocation) error {
	s.call = call
	s.state.Push(s.engine.entry)
	return s.state.PCall(0, call.results, nil)
}

// enter is the first function of each run. It runs the script and then calls its function.
func enter(state *lua.LState) int {
	s := sandboxOf(state)
	state.Panic = stdlib.PanicWithoutTraceback
	state.Push(s.call.program.function(s.environment))
	state.Call(0, 0)
	function := s.environment.RawGetString(s.call.function)
	if function == lua.LNil {
		state.Error(lua.LString("not found function "+s.call.function+": define it as a global function"), 0)
	}
	if function.Type() != lua.LTFunction {
		state.Error(lua.LString(s.call.function+" is a "+function.Type().String()+", not a function"), 0)
	}
	state.Push(function)
	for _, argument := range s.call.arguments {
		if list, isList := argument.([]any); isList && list == nil {
			state.Push(lua.LNil)
			continue
		}
		state.Push(s.Lua(argument))
	}
	state.Call(len(s.call.arguments), s.call.results)
	return s.call.results
}

// State implements stdlib.Host.
func (s *sandbox) State() *stdlib.State { return &s.libraries }

// Print implements stdlib.Host.
func (s *sandbox) Print(line string) {
	if s.engine.options.Print != nil {
		s.engine.options.Print(line)
	}
}
