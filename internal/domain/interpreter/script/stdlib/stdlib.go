// Package stdlib contains the standard libraries of Lua 5.1 for scripts that are not trusted.
//
// Every function reports its work and its memory to the Host before it does the work. So the Host
// can end any script: no call of a library function takes long or allocates much without a report
// in between. The functions keep no state of their own: what they must remember during a run is in
// the State of the run. So all Lua states may share the same functions.
//
// The reference manual of Lua 5.1 decides how a function behaves. If the manual leaves a case
// undefined, the function behaves as the library of gopher-lua, for which existing scripts were
// written, unless that behaviour is a Go panic.
package stdlib

import (
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Host is the run of a script, as the library functions see it. The context of the Lua state
// implements it. Step, Allocate, String, Load and Lua raise a Lua error if the script exceeds a limit.
// If the run must end, a script can catch this error, but the next call of Step raises it again.
type Host interface {
	// Step counts n units of work. One unit takes about as long as one instruction.
	Step(n int)
	// Allocate counts bytes that the caller is about to allocate.
	Allocate(bytes int)
	// String counts the bytes of a string that the caller is about to create. It raises an error if
	// the string would be longer than the limit for one string. This error need not end the run.
	String(length int)
	// Holes counts entries of lists that the caller is about to create without a value. They make it
	// slower to find the end of a list.
	Holes(n int)
	// Load reads all entries of a lazily converted table. It does nothing to any other table.
	Load(table *lua.LTable)
	// Now returns the current time. Its location is the local time zone of scripts.
	Now() time.Time
	// Print receives one line that the script prints, without the line feed.
	Print(line string)
	// Go converts a value to the types of unstructured objects: nil, bool, int64, float64, string,
	// []any and map[string]any. The result may share parts of the objects that the script
	// interprets, so the caller must not change it. An empty table that the script created is an
	// empty map.
	Go(value lua.LValue) (any, error)
	// Lua converts a value of the types of unstructured objects. The caller must not change the
	// value afterwards.
	Lua(value any) lua.LValue
	// Loader returns the function that creates the module. It is nil for an unknown module.
	Loader(module string) *lua.LFunction
	// State returns the State of this run.
	State() *State
}

// HostOf returns the Host of a Lua state. It panics if the context of the state is no Host.
func HostOf(state *lua.LState) Host {
	return state.Context().(Host)
}

// State holds what the libraries remember during one run. The zero State is ready for use. It must
// not be shared by runs.
type State struct {
	random     random
	identities map[lua.LValue]int
	loaded     *lua.LTable
}

// Loaded returns the table package.loaded of the run.
func (s *State) Loaded() *lua.LTable {
	if s.loaded == nil {
		s.loaded = &lua.LTable{Metatable: lua.LNil}
	}
	return s.loaded
}

// Reset prepares the State for the next run.
func (s *State) Reset() {
	*s = State{}
}

// identity returns the number of a table or function: 1 for the first one that the run asks for.
// Scripts see it instead of an address, so that the same script has the same result in every run.
func (s *State) identity(value lua.LValue) int {
	if number, ok := s.identities[value]; ok {
		return number
	}
	if s.identities == nil {
		s.identities = map[lua.LValue]int{}
	}
	s.identities[value] = len(s.identities) + 1
	return len(s.identities)
}
