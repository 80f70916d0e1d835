// Package stdlibtest is a test kit: it runs scripts with the libraries of stdlib, without the engine
// of package script.
package stdlibtest

import (
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
)

// Host is a stdlib.Host that counts, and that ends a script at its limits. A limit of 0 is no
// limit. It is also the context of its Lua state.
type Host struct {
	// MaxSteps, MaxBytes and MaxString are the limits of steps, of all bytes, and of the bytes of
	// one string.
	MaxSteps, MaxBytes, MaxString int
	// Steps and Bytes are what the script has used. An instruction is a step.
	Steps, Bytes int
	// Clock is the current time of the script.
	Clock time.Time
	// Printed holds the lines that the script printed.
	Printed []string
	// Modules are the loaders of the modules that the script can require, by the name of the module.
	Modules map[string]lua.LGFunction

	lua   *lua.LState
	state stdlib.State
	spent chan struct{}
}

// New returns a Host with a Lua state. The caller closes the state.
func New() (*Host, *lua.LState) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true, RegistryMaxSize: 64 * 1024, CallStackSize: 200, MinimizeStackMemory: true})
	host := &Host{lua: state, Clock: time.Date(2024, 2, 29, 13, 4, 5, 0, time.UTC)}
	state.SetContext(host)
	openLibraries(state)
	return host, state
}

func openLibraries(state *lua.LState) {
	state.SetFuncs(state.G.Global, stdlib.Base())
	state.SetGlobal("_G", state.G.Global)
	for name, value := range stdlib.BaseValues() {
		state.SetGlobal(name, value)
	}
	for name, functions := range map[string]map[string]lua.LGFunction{
		"string": stdlib.String(), "table": stdlib.Table(), "math": stdlib.Math(), "os": stdlib.OS(),
	} {
		state.SetGlobal(name, state.SetFuncs(state.NewTable(), functions))
	}
	for name, value := range stdlib.MathValues() {
		state.SetField(state.GetGlobal("math"), name, value)
	}
	methods := state.NewTable()
	methods.RawSetString("__index", state.GetGlobal("string"))
	state.SetMetatable(lua.LString(""), methods)
}

// Run runs a script and returns its results.
func Run(state *lua.LState, script string) ([]lua.LValue, error) {
	function, err := state.LoadString(script)
	if err != nil {
		return nil, err
	}
	top := state.GetTop()
	state.Push(function)
	if err := state.PCall(0, lua.MultRet, nil); err != nil {
		return nil, err
	}
	var results []lua.LValue
	for i := top + 1; i <= state.GetTop(); i++ {
		results = append(results, state.Get(i))
	}
	state.SetTop(top)
	return results, nil
}

// Deadline implements context.Context. There is none.
func (h *Host) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value implements context.Context. There are no values.
func (h *Host) Value(any) any { return nil }

// Done counts an instruction. It returns a closed channel after the script has reached a limit.
func (h *Host) Done() <-chan struct{} {
	h.Steps++
	if h.spent == nil && h.MaxSteps > 0 && h.Steps > h.MaxSteps {
		h.spend()
	}
	return h.spent
}

// Err returns an error after the script has reached a limit.
func (h *Host) Err() error {
	if h.spent != nil {
		return errors.New("too many steps")
	}
	return nil
}

func (h *Host) end(format string, args ...any) {
	if h.spent == nil {
		h.spend()
	}
	h.lua.RaiseError(format, args...)
}

func (h *Host) spend() {
	h.spent = make(chan struct{})
	close(h.spent)
}

// Step implements stdlib.Host.
func (h *Host) Step(n int) {
	if n < 0 {
		panic(fmt.Sprintf("a negative number of steps: %d", n))
	}
	h.Steps += n
	if h.spent != nil || h.MaxSteps > 0 && h.Steps > h.MaxSteps {
		h.end("too many steps")
	}
}

// Allocate implements stdlib.Host.
func (h *Host) Allocate(bytes int) {
	if bytes < 0 {
		panic(fmt.Sprintf("a negative number of bytes: %d", bytes))
	}
	h.Bytes += bytes
	if h.MaxBytes > 0 && h.Bytes > h.MaxBytes {
		h.end("too much memory")
	}
}

// String implements stdlib.Host.
func (h *Host) String(length int) {
	if h.MaxString > 0 && length > h.MaxString {
		h.end("the string is too long")
	}
	h.Allocate(length)
}

// Holes implements stdlib.Host. It does nothing.
func (h *Host) Holes(int) {}

// Load implements stdlib.Host. It calls the function in the field __load of the metatable, if there
// is one, and then removes the metatable.
func (h *Host) Load(table *lua.LTable) {
	meta, ok := table.Metatable.(*lua.LTable)
	if !ok {
		return
	}
	if load, ok := meta.RawGetString("__load").(*lua.LUserData); ok {
		table.Metatable = lua.LNil
		load.Value.(func(*lua.LTable))(table)
	}
}

// LazyTable returns a table whose entries exist only after a call of Load.
func LazyTable(load func(table *lua.LTable)) *lua.LTable {
	meta := &lua.LTable{Metatable: lua.LNil}
	meta.RawSetString("__load", &lua.LUserData{Value: load, Metatable: lua.LNil})
	return &lua.LTable{Metatable: meta}
}

// Now implements stdlib.Host.
func (h *Host) Now() time.Time { return h.Clock }

// Print implements stdlib.Host.
func (h *Host) Print(line string) { h.Printed = append(h.Printed, line) }

// Loader implements stdlib.Host.
func (h *Host) Loader(module string) *lua.LFunction {
	loader, ok := h.Modules[module]
	if !ok {
		return nil
	}
	return h.lua.NewFunction(loader)
}

// State implements stdlib.Host.
func (h *Host) State() *stdlib.State { return &h.state }

// Go implements stdlib.Host.
func (h *Host) Go(value lua.LValue) (any, error) {
	switch value := value.(type) {
	case lua.LString:
		return string(value), nil
	case lua.LBool:
		return bool(value), nil
	case lua.LNumber:
		if whole := int64(value); lua.LNumber(whole) == value {
			return whole, nil
		}
		return float64(value), nil
	case *lua.LNilType:
		return nil, nil
	case *lua.LTable:
		return h.goTable(value)
	default:
		return nil, fmt.Errorf("a %s cannot be converted", value.Type())
	}
}

func (h *Host) goTable(table *lua.LTable) (any, error) {
	list, object := []any{}, map[string]any{}
	for key, value := table.Next(lua.LNil); key != lua.LNil; key, value = table.Next(key) {
		converted, err := h.Go(value)
		if err != nil {
			return nil, err
		}
		if name, ok := key.(lua.LString); ok {
			object[string(name)] = converted
		} else {
			list = append(list, converted)
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	return object, nil
}

// Lua implements stdlib.Host.
func (h *Host) Lua(value any) lua.LValue {
	switch value := value.(type) {
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		table := h.lua.NewTable()
		for _, entry := range value {
			table.Append(h.Lua(entry))
		}
		return table
	case map[string]any:
		table := h.lua.NewTable()
		for key, entry := range value {
			table.RawSetString(key, h.Lua(entry))
		}
		return table
	default:
		return lua.LNil
	}
}
