// Package script interprets objects with scripts in Lua 5.1 that are not trusted.
//
// Invariants:
//
//   - Every call ends within its limits: time, memory, length of strings, size of the result. No
//     script can catch the error of an exceeded limit and continue.
//   - Calls share no state. Global variables, changed libraries and changed modules end with the
//     call.
//   - No call changes its arguments. What a script does not touch is the same Go value in the
//     result, with 64-bit integers and empty lists and objects. A result that equals the argument is
//     the argument.
//   - The result of a call depends only on the script, its arguments and the clock.
//   - An error names the customization, the operation and, if it is known, the line.
//
// The virtual machine is gopher-lua, which has no limits of its own. Package guard compiles scripts
// so that everything that allocates is a function call, and the budget of a call is the context that
// the virtual machine asks before each instruction.
package script

import (
	"fmt"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/guard"
)

// Limits are the limits of one call of a script. A zero field means its default.
type Limits struct {
	// Time is the run time of the script and its function. The default is 1 second.
	Time time.Duration
	// Memory is the number of bytes that a call may allocate in total. The default is 64 MiB.
	Memory int64
	// String is the maximum length of a string, in bytes. The default is 1 MiB.
	String int
	// Result is the maximum number of values in a result. The default is 100 000.
	Result int
	// Text is the maximum length of the text of a script, in bytes. The default is 1 MiB.
	Text int
}

func (l Limits) withDefaults() Limits {
	const mebi = 1 << 20
	if l.Time == 0 {
		l.Time = time.Second
	}
	if l.Memory == 0 {
		l.Memory = 64 * mebi
	}
	if l.String == 0 {
		l.String = mebi
	}
	if l.Result == 0 {
		l.Result = 100_000
	}
	if l.Text == 0 {
		l.Text = mebi
	}
	return l
}

// Options configure an Engine.
type Options struct {
	Limits Limits
	// Now returns the current time, for deadlines and for os.time and os.date. It is required. It
	// must be safe for concurrent use.
	Now func() time.Time
	// ResourceQuotaEstimate sets the priority class in the requirements that
	// kube.accuratePodRequirements returns. The default is false.
	ResourceQuotaEstimate bool
	// Modules are modules in Lua that scripts may require, by name. Scripts may always require kube.
	Modules map[string]string
	// Print receives the lines that scripts print. nil discards them.
	Print func(line string)
}

// Engine compiles and runs scripts. It is safe for concurrent use.
type Engine struct {
	options Options
	limits  Limits
	modules map[string]*program
	cache   cache
	// pool has idle sandboxes.
	pool sync.Pool
	// closed is the channel that ends every run.
	closed <-chan struct{}

	// All states share the following values. They do not change after NewEngine.

	// globals is the metatable of the global variables of a run.
	globals *lua.LTable
	// lazy is the metatable of lazily converted tables.
	lazy *lua.LTable
	// libraries are tables of functions by the name of the library, and overlays are the metatables
	// of the tables that scripts get instead.
	libraries, overlays map[string]*lua.LTable
	// hidden are the hidden functions of package guard by name.
	hidden            map[string]*lua.Upvalue
	entry, kubeLoader *lua.LFunction
	// numbers are the first integers, so that reading them needs no memory.
	numbers [256]lua.LValue
}

// NewEngine returns an engine. It returns an error if a module does not compile.
func NewEngine(options Options) (*Engine, error) {
	closed := make(chan struct{})
	close(closed)
	e := &Engine{options: options, limits: options.Limits.withDefaults(), modules: map[string]*program{}, closed: closed}
	e.pool.New = func() any { return e.newSandbox() }
	for i := range e.numbers {
		e.numbers[i] = lua.LNumber(i)
	}
	e.makeLibraries()
	for name, text := range options.Modules {
		module, err := e.compile(text, moduleSource+name)
		if err != nil {
			return nil, fmt.Errorf("compiling the module %s: %w", name, err)
		}
		e.modules[name] = module
	}
	return e, nil
}

// Compile returns an error if the text is not a valid script. The error contains the line.
func (e *Engine) Compile(text string) error {
	_, err := e.compile(text, scriptSource)
	return err
}

// number returns a number for scripts.
func (e *Engine) number(value float64) lua.LValue {
	if value >= 0 && value < float64(len(e.numbers)) && value == float64(int(value)) {
		return e.numbers[int(value)]
	}
	return lua.LNumber(value)
}

// program is a compiled script or module.
type program struct {
	text  string
	proto *lua.FunctionProto
	// upvalues are the hidden functions that the program uses.
	upvalues []*lua.Upvalue
	// longest is the length of the longest string constant.
	longest int
}

func (e *Engine) compile(text, source string) (*program, error) {
	proto, err := guard.Compile(text, source, e.limits.Text)
	if err != nil {
		return nil, err
	}
	p := &program{text: text, proto: proto, longest: longestString(proto)}
	for _, name := range proto.DbgUpvalues {
		p.upvalues = append(p.upvalues, e.hidden[name])
	}
	return p, nil
}

func longestString(proto *lua.FunctionProto) (longest int) {
	for _, constant := range proto.Constants {
		if text, isString := constant.(lua.LString); isString {
			longest = max(longest, len(text))
		}
	}
	for _, inner := range proto.FunctionPrototypes {
		longest = max(longest, longestString(inner))
	}
	return longest
}

// function returns the main function of the program with the given global variables.
func (p *program) function(environment *lua.LTable) *lua.LFunction {
	return &lua.LFunction{Proto: p.proto, Env: environment, Upvalues: p.upvalues}
}
