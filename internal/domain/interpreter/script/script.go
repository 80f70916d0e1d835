// Package script interprets objects with the Lua scripts of ResourceInterpreterCustomizations.
//
// Invariants:
//
//   - Every call ends within about a second. A script cannot catch the timeout and continue.
//   - Calls share no state: global variables and modified libraries are discarded after each call.
//   - Calls do not modify their arguments, and results do not share memory with them. Values that the
//     script did not change are the same as in the argument, including 64-bit integers, empty lists and
//     empty objects. A result that equals the argument is the argument itself.
//   - An error names the customization, the operation and, if known, the line.
//
// Scripts run in gopher-lua, with a context that times out after a second and with gopher-lua's stack
// limits. Instructions that gopher-lua does not limit are bounded here: strings have a maximum length, and
// pattern matching stops with the context.
package script

import (
	"fmt"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// callTimeout is the maximum duration of a call, which runs the script and its function.
const callTimeout = time.Second

// Options configures an Engine.
type Options struct {
	// Now returns the current time for pauses, os.time and os.date. It is required, and must be safe
	// for concurrent use.
	Now func() time.Time
	// ResourceQuotaEstimate sets the priority class in the requirements that
	// kube.accuratePodRequirements returns. The default is false.
	ResourceQuotaEstimate bool
	// Modules holds the source of Lua modules that scripts may require, by name. Scripts may always
	// require kube.
	Modules map[string]string
	// Print receives the lines that scripts print. If it is nil, they are discarded.
	Print func(line string)
}

// Engine compiles and runs scripts. It is safe for concurrent use.
type Engine struct {
	options Options
	timeout time.Duration
	modules map[string]*lua.FunctionProto
	cache   cache
	// pool holds idle sandboxes.
	pool sync.Pool
}

// NewEngine returns an engine. It returns an error if a module does not compile.
func NewEngine(options Options) (*Engine, error) {
	limitArrays()
	e := &Engine{options: options, timeout: callTimeout, modules: map[string]*lua.FunctionProto{}}
	e.pool.New = func() any { return e.newSandbox() }
	for name, text := range options.Modules {
		module, err := compile(text, moduleSource+name)
		if err != nil {
			return nil, fmt.Errorf("compiling the module %s: %w", name, err)
		}
		e.modules[name] = module
	}
	return e, nil
}

// limitArrays bounds the memory that an assignment such as t[60000000] = 1 allocates, because larger
// indexes are stored in a map. gopher-lua only has a package variable for this limit.
var limitArrays = sync.OnceFunc(func() { lua.MaxArrayIndex = 1 << 18 })

// Check returns an error if the text is not a valid script. The error contains the line.
func Check(text string) error {
	_, err := compile(text, scriptSource)
	return err
}
