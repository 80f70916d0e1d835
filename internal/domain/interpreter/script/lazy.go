package script

import (
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// The tables for the objects and lists of an argument are converted lazily. Such a table is empty and has
// the metatable lazy, which reads fields and entries from the argument, until the script changes or
// traverses it. Then its fields or entries are loaded.

// node is an object or a list for which a table stands. The other field is nil.
type node struct {
	object map[string]any
	list   []any
	// fields and entries are the tables that the script has read from this one before it was loaded.
	fields  []field
	entries []*lua.LTable
}

type field struct {
	name  string
	table *lua.LTable
}

func (n *node) origin() any {
	if n.list != nil {
		return n.list
	}
	return n.object
}

// maxExact is the largest integer up to which every integer has a float64 of its own.
const maxExact = 1<<53 - 1

// toLua converts a value of the types of unstructured objects. A nil list is nil.
func (s *sandbox) toLua(value any) lua.LValue {
	switch value := value.(type) {
	case nil:
		return lua.LNil
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		s.rememberInteger(value)
		return lua.LNumber(value)
	case []any:
		if value == nil {
			return lua.LNil
		}
		return s.newLazy(&node{list: value})
	case map[string]any:
		return s.newLazy(&node{object: value})
	}
	s.state.RaiseError("the object contains a value of the type %T, which JSON does not have", value)
	return lua.LNil
}

func (s *sandbox) newLazy(n *node) *lua.LTable {
	table := &lua.LTable{Metatable: s.lazy}
	s.nodes[table] = n
	return table
}

// rememberInteger stores an integer that the script reads, unless every result can represent it.
func (s *sandbox) rememberInteger(integer int64) {
	if -maxExact <= integer && integer <= maxExact {
		return
	}
	if s.integers == nil {
		s.integers = map[float64]any{}
	}
	number := float64(integer)
	if known, ok := s.integers[number]; !ok {
		s.integers[number] = integer
	} else if known != integer {
		s.integers[number] = roundedNumber(number)
	}
}

// field converts a field of a node. The table for it is always the same one.
func (s *sandbox) field(n *node, name string) lua.LValue {
	for _, f := range n.fields {
		if f.name == name {
			return f.table
		}
	}
	value := s.toLua(n.object[name])
	if table, ok := value.(*lua.LTable); ok {
		n.fields = append(n.fields, field{name: name, table: table})
	}
	return value
}

// entry converts an entry of a node. The table for it is always the same one.
func (s *sandbox) entry(n *node, index int) lua.LValue {
	if n.entries != nil && n.entries[index] != nil {
		return n.entries[index]
	}
	value := s.toLua(n.list[index])
	if table, ok := value.(*lua.LTable); ok {
		if n.entries == nil {
			n.entries = make([]*lua.LTable, len(n.list))
		}
		n.entries[index] = table
	}
	return value
}

// load converts the fields or entries of a lazily converted table.
func (s *sandbox) load(table *lua.LTable) {
	if table.Metatable != s.lazy {
		return
	}
	n := s.nodes[table]
	*table = *s.state.CreateTable(len(n.list), len(n.object))
	for _, name := range slices.Sorted(maps.Keys(n.object)) {
		table.RawSetString(name, s.field(n, name))
	}
	for i := range n.list {
		table.RawSetInt(i+1, s.entry(n, i))
	}
	n.fields, n.entries = nil, nil
}

// readLazy is the metamethod __index of tables that are not loaded.
func (s *sandbox) readLazy(state *lua.LState) int {
	n := s.nodes[state.CheckTable(1)]
	value := lua.LNil
	switch key := state.Get(2).(type) {
	case lua.LString:
		value = s.field(n, string(key))
	case lua.LNumber:
		if index := int(key); lua.LNumber(index) == key && index >= 1 && index <= len(n.list) {
			value = s.entry(n, index-1)
		}
	}
	state.Push(value)
	return 1
}

// writeLazy is the metamethod __newindex.
func (s *sandbox) writeLazy(state *lua.LState) int {
	table := state.CheckTable(1)
	s.load(table)
	state.RawSet(table, state.Get(2), state.Get(3))
	return 0
}

// lazyLength is the metamethod __len.
func (s *sandbox) lazyLength(state *lua.LState) int {
	state.Push(lua.LNumber(visibleLength(s.nodes[state.CheckTable(1)].list)))
	return 1
}
