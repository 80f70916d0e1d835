package stdlib

import (
	"sort"

	lua "github.com/yuin/gopher-lua"
)

// tableSort is sort(table [, less]). If the function less is inconsistent, the order is undefined.
func tableSort(state *lua.LState) int {
	host, table := HostOf(state), checkTable(state)
	s := &sorter{state: state, host: host}
	if state.Get(2) != lua.LNil {
		s.less = checkFunction(state)
	}
	length := table.Len()
	host.Allocate(length * valueBytes)
	host.Step(1 + length/stepEntries)
	// The function less may change the table, so a copy is sorted.
	s.values = make([]lua.LValue, length)
	for i := range s.values {
		s.values[i] = table.RawGetInt(i + 1)
	}
	sort.Sort(s)
	host.Allocate(max(length-table.Len(), 0) * 2 * valueBytes)
	for i, value := range s.values {
		table.RawSetInt(i+1, value)
	}
	return 0
}

// sorter sorts values of Lua.
type sorter struct {
	state  *lua.LState
	host   Host
	less   *lua.LFunction
	values []lua.LValue
}

func (s *sorter) Len() int { return len(s.values) }

func (s *sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

func (s *sorter) Less(i, j int) bool {
	first, second := s.values[i], s.values[j]
	if s.less != nil {
		return lua.LVAsBool(call(s.state, s.less, first, second))
	}
	if a, ok := first.(lua.LString); ok {
		if b, ok := second.(lua.LString); ok {
			s.host.Step(1 + min(len(a), len(b))/stepBytes)
			return a < b
		}
	}
	s.host.Step(1)
	return s.state.LessThan(first, second)
}
