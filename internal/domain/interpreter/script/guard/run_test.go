package guard

import (
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// runGuarded runs a script in a state with all libraries of gopher-lua. The hidden functions do what
// the virtual machine would have done.
func runGuarded(t testing.TB, state *lua.LState, text string) error {
	t.Helper()
	proto, err := Compile(text, "script", 1<<20)
	if err != nil {
		return err
	}
	function := state.NewFunctionFromProto(proto)
	for i, name := range proto.DbgUpvalues {
		implementation, ok := plainFunctions()[name]
		if !ok {
			t.Fatalf("the script uses the unknown hidden function %q", name)
		}
		function.Upvalues[i] = &lua.Upvalue{}
		function.Upvalues[i].Close()
		function.Upvalues[i].SetValue(state.NewFunction(implementation))
	}
	state.Push(function)
	return state.PCall(0, lua.MultRet, nil)
}

func plainFunctions() map[string]lua.LGFunction {
	first := func(state *lua.LState) int {
		state.Push(state.Get(1))
		return 1
	}
	return map[string]lua.LGFunction{
		Concat: func(state *lua.LState) int {
			var values []lua.LValue
			for i := 1; i <= state.GetTop(); i++ {
				values = append(values, state.Get(i))
			}
			state.Push(lua.LString(state.Concat(values...)))
			return 1
		},
		Set: func(state *lua.LState) int {
			state.SetTable(state.Get(1), state.Get(2), state.Get(3))
			return 0
		},
		Length: func(state *lua.LState) int {
			state.Push(lua.LNumber(state.ObjLen(state.Get(1))))
			return 1
		},
		List: func(state *lua.LState) int {
			table := state.NewTable()
			for i := 1; i <= state.GetTop(); i++ {
				table.RawSetInt(i, state.Get(i))
			}
			state.Push(table)
			return 1
		},
		Charge: first,
		Entries: func(state *lua.LState) int {
			for i := 2; i <= state.GetTop(); i += 2 {
				state.SetTable(state.Get(1), state.Get(i), state.Get(i+1))
			}
			return first(state)
		},
		Closure: first,
		Arguments: func(state *lua.LState) int {
			n := state.GetTop()
			table := state.NewTable()
			for i := 1; i <= n; i++ {
				table.RawSetInt(i, state.Get(i))
			}
			table.RawSetString("n", lua.LNumber(n))
			state.Push(table)
			return 1
		},
	}
}
