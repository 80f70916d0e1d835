package script

import (
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

const (
	// lazyBytes is the memory for a lazily converted table.
	lazyBytes = 250
	// maxWritten is the maximum number of fields of a lazily converted table that are set before all
	// fields are loaded.
	maxWritten = 16
	// maxSmall is the maximum number of tables in a list that is searched from its start.
	maxSmall = 8
)

// node is what the sandbox knows about a table that stands for a Go value. Until the table is loaded,
// its Lua fields are only those that the script has set.
type node struct {
	// One of them is set. Both are empty for an empty value of their type.
	object map[string]any
	list   []any
	// library is the table whose fields are missing in an overlay.
	library *lua.LTable

	isLoaded bool
	// small and children are the tables of fields of the object that the script has read.
	small    []child
	children map[string]*lua.LTable
	// entries are the tables of entries of the list that the script has read.
	entries []*lua.LTable
	// written are the fields that the script has set. Their values are in the Lua table.
	written []string
}

type child struct {
	name  string
	table *lua.LTable
}

// value returns the Go value that the table stands for.
func (n *node) value() any {
	if n.list != nil {
		return n.list
	}
	return n.object
}

// length returns the index of the last entry that is not nil.
func (n *node) length() int {
	length := len(n.list)
	for length > 0 && n.list[length-1] == nil {
		length--
	}
	return length
}

// hasOnlyNulls reports whether the Go value has entries, and a script sees none of them.
func (n *node) hasOnlyNulls() bool {
	if n == nil || len(n.object)+len(n.list) == 0 || n.length() > 0 {
		return false
	}
	for _, value := range n.object {
		if value != nil {
			return false
		}
	}
	return true
}

// hasNullField reports whether the Go value is an object with a field that is null.
func (n *node) hasNullField() bool {
	if n == nil {
		return false
	}
	for _, value := range n.object {
		if value == nil {
			return true
		}
	}
	return false
}

func (n *node) child(name string) *lua.LTable {
	for _, c := range n.small {
		if c.name == name {
			return c.table
		}
	}
	return n.children[name]
}

func (n *node) setChild(name string, table *lua.LTable) {
	if len(n.small) < maxSmall {
		n.small = append(n.small, child{name: name, table: table})
		return
	}
	if n.children == nil {
		n.children = map[string]*lua.LTable{}
	}
	n.children[name] = table
}

// lazyTables are the tables of a run that stand for Go values.
type lazyTables struct {
	nodes map[*lua.LTable]*node
	// reused are nodes of earlier runs.
	reused []*node
	// captured is the number of variables that the functions of the run have captured.
	captured int
}

// maxCaptured is the maximum number of variables that can be captured at one time.
const maxCaptured = maxRegisters

// forget removes all tables. It keeps memory for the next run.
func (l *lazyTables) forget() {
	l.captured = 0
	isLarge := len(l.nodes) > maxReused
	for _, n := range l.nodes {
		if len(l.reused) == maxReused {
			break
		}
		clear(n.small)
		clear(n.written)
		*n = node{small: n.small[:0], written: n.written[:0]}
		l.reused = append(l.reused, n)
	}
	if isLarge {
		l.nodes = map[*lua.LTable]*node{}
		return
	}
	clear(l.nodes)
}

// unloaded returns the node of a table that is not loaded, or nil.
func (s *sandbox) unloaded(table *lua.LTable) *node {
	if table.Metatable == lua.LNil {
		return nil
	}
	return s.nodes[table]
}

// newLazy returns a table that stands for a value of an object.
func (s *sandbox) newLazy(object map[string]any, list []any) *lua.LTable {
	s.Allocate(lazyBytes)
	var n *node
	if last := len(s.reused) - 1; last >= 0 {
		n, s.reused = s.reused[last], s.reused[:last]
	} else {
		n = &node{}
	}
	n.object, n.list = object, list
	table := newTable()
	table.Metatable = s.engine.lazy
	s.nodes[table] = n
	return table
}

// Lua implements stdlib.Host.
func (s *sandbox) Lua(value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			value = map[string]any{}
		}
		return s.newLazy(value, nil)
	case []any:
		if value == nil {
			value = []any{}
		}
		return s.newLazy(nil, value)
	}
	return s.scalar(value)
}

// scalar returns a value that is neither an object nor a list.
func (s *sandbox) scalar(value any) lua.LValue {
	switch value := value.(type) {
	case nil:
		return lua.LNil
	case string:
		s.noticeString(len(value))
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	}
	if integer, ok := integerOf(value); ok {
		s.integers.remember(integer)
		return s.engine.number(float64(integer))
	}
	s.state.RaiseError("the object contains a value of the type %T, which JSON does not have", value)
	return lua.LNil
}

// readLazyField reads a field that is missing in the Lua table of a node.
func readLazyField(state *lua.LState) int {
	s := sandboxOf(state)
	table := state.Get(1).(*lua.LTable)
	n := s.nodes[table]
	value := lua.LNil
	switch key := state.Get(2).(type) {
	case lua.LString:
		if n.object != nil && !slices.Contains(n.written, string(key)) {
			value = s.field(n, string(key))
		}
	case lua.LNumber:
		if index := int(key); n.list != nil && lua.LNumber(index) == key && index >= 1 && index <= len(n.list) {
			value = s.entry(n, index-1)
		}
	}
	state.Push(value)
	return 1
}

// field returns a field of an object. A table is always the same one.
func (s *sandbox) field(n *node, name string) lua.LValue {
	value := n.object[name]
	switch value.(type) {
	case map[string]any, []any:
		if table := n.child(name); table != nil {
			return table
		}
		table := s.Lua(value)
		n.setChild(name, table.(*lua.LTable))
		return table
	}
	return s.scalar(value)
}

// entry returns an entry of a list. A table is always the same one.
func (s *sandbox) entry(n *node, index int) lua.LValue {
	value := n.list[index]
	switch value.(type) {
	case map[string]any, []any:
		if n.entries == nil {
			s.Allocate(8 * len(n.list))
			n.entries = make([]*lua.LTable, len(n.list))
		}
		if n.entries[index] == nil {
			n.entries[index] = s.Lua(value).(*lua.LTable)
		}
		return n.entries[index]
	}
	return s.scalar(value)
}

// setLazy assigns a field of a table with a metatable. It returns false if the caller must assign the
// field, because the table has no metatable any more, or because nothing else is to do.
func (s *sandbox) setLazy(table *lua.LTable, key, value lua.LValue) (done bool) {
	n := s.nodes[table]
	if n == nil { // the global variables
		return false
	}
	name, isString := key.(lua.LString)
	switch {
	case n.library != nil && value != lua.LNil:
		return false
	case n.object == nil || !isString:
		s.Load(table)
		return false
	case slices.Contains(n.written, string(name)):
	case len(n.written) == maxWritten:
		s.Load(table)
		return false
	default:
		if len(n.written) == 0 {
			s.Allocate(plainBytes)
		}
		s.Allocate(fieldBytes)
		n.written = append(n.written, string(name))
	}
	table.RawSetString(string(name), value)
	return true
}

// Load implements stdlib.Host.
func (s *sandbox) Load(table *lua.LTable) {
	n := s.unloaded(table)
	switch {
	case n == nil:
		return
	case n.library != nil:
		for name, function := n.library.Next(lua.LNil); name != lua.LNil; name, function = n.library.Next(name) {
			if table.RawGet(name) == lua.LNil {
				table.RawSet(name, function)
			}
		}
	case n.object != nil:
		s.loadObject(table, n)
	default:
		s.loadList(table, n)
	}
	table.Metatable, n.isLoaded = lua.LNil, true
	n.small, n.children, n.entries, n.written = nil, nil, nil, nil
}

func (s *sandbox) loadObject(table *lua.LTable, n *node) {
	s.Allocate(plainBytes + fieldBytes*len(n.object))
	for _, name := range slices.Sorted(maps.Keys(n.object)) {
		s.Step(1)
		s.noticeString(len(name))
		if !slices.Contains(n.written, name) {
			if value := s.field(n, name); value != lua.LNil {
				table.RawSetString(name, value)
			}
		}
	}
}

func (s *sandbox) loadList(table *lua.LTable, n *node) {
	s.Allocate(plainBytes + firstEntryBytes + entryBytes*len(n.list))
	for i := range n.list {
		s.Step(1)
		value := s.entry(n, i)
		if value == lua.LNil {
			s.holes++
		}
		table.RawSetInt(i+1, value)
	}
}
