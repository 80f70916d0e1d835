package script

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// maxResultDepth is the maximum nesting of a result.
const maxResultDepth = 200

// removed is the result for an empty table that is neither an object nor a list.
type removed struct{}

// converter converts one result to the types of unstructured objects.
type converter struct {
	*sandbox
	// inputs are the objects that decide whether an empty table is an object or a list.
	inputs []any
	// keepsEmpty converts empty tables to empty objects, whatever the inputs are.
	keepsEmpty bool
	count      int
	path       path
	// tables are the tables that contain the current value.
	tables []*lua.LTable
	// moves is the number of these tables that stand for a value at another place of an object.
	moves int
	// empties are the values of empty tables by the path of the table.
	empties map[string]any
}

// convert converts a table to the types of unstructured objects. source is the value that the result
// replaces, or nil. A result that equals source is source itself. start is the path of the value in
// messages and in inputs. An empty table of the script is the type that it has in inputs; without
// inputs, it is removed from its object. ifEmpty is the result for an empty table at the start.
func (s *sandbox) convert(value lua.LValue, source any, start path, ifEmpty any, inputs ...any) (any, error) {
	c := &converter{sandbox: s, inputs: inputs, path: start}
	result, _, err := c.against(value, source)
	if _, isRemoved := result.(removed); isRemoved {
		result = ifEmpty
	}
	return result, err
}

// Go implements stdlib.Host.
func (s *sandbox) Go(value lua.LValue) (any, error) {
	c := &converter{sandbox: s, keepsEmpty: true}
	result, _, err := c.against(value, nil)
	return result, err
}

// against converts a value that replaces source. If the result equals source, it is source.
func (c *converter) against(value lua.LValue, source any) (result any, isSource bool, err error) {
	if err := c.countValue(); err != nil {
		return nil, false, err
	}
	switch value := value.(type) {
	case *lua.LNilType:
		return nil, source == nil, nil
	case lua.LBool:
		return bool(value), source == bool(value), nil
	case lua.LString:
		if source == string(value) {
			return source, true, nil
		}
		return c.text(string(value))
	case lua.LNumber:
		return c.number(float64(value), source)
	case *lua.LTable:
		return c.table(value, source)
	}
	return nil, false, c.refuse("is a " + value.Type().String() + ", which JSON does not have")
}

func (c *converter) refuse(problem string) error {
	if len(c.path) == 0 {
		return errors.New("the result " + problem)
	}
	return fmt.Errorf("the value at %s of the result %s", c.path, problem)
}

// text returns a text that does not equal its source. JSON would replace bytes that are not UTF-8.
func (c *converter) text(text string) (any, bool, error) {
	if !utf8.ValidString(text) {
		return nil, false, c.refuse("is a string that is not valid UTF-8: do not cut a character of several bytes")
	}
	return text, false, c.reserve(textBytes * len(text))
}

func (c *converter) number(number float64, source any) (any, bool, error) {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return nil, false, c.refuse(fmt.Sprintf("is the number %v, which JSON does not have", number))
	}
	if integer, ok := integerOf(source); ok && float64(integer) == number || source == number {
		return source, true, nil
	}
	return c.integers.value(number), false, nil
}

// table converts a table.
func (c *converter) table(table *lua.LTable, source any) (any, bool, error) {
	if slices.Contains(c.tables, table) {
		return nil, false, c.refuse("contains itself")
	}
	if len(c.tables) == maxResultDepth {
		return nil, false, c.refuse(fmt.Sprintf("is nested deeper than %d levels", maxResultDepth))
	}
	c.tables = append(c.tables, table)
	defer func() { c.tables = c.tables[:len(c.tables)-1] }()

	n := c.nodes[table]
	if n == nil || n.library != nil {
		return c.plain(table, nil, source)
	}
	origin := n.value()
	convert := c.plain
	if !n.isLoaded {
		convert = c.overlaid
	}
	isInPlace := isSameValue(origin, source)
	if !isInPlace {
		c.moves++
		defer func() { c.moves-- }()
	}
	result, isOrigin, err := convert(table, n, origin)
	switch {
	case err != nil:
		return nil, false, err
	case isOrigin && isInPlace:
		return source, true, nil
	case source != nil && reflect.DeepEqual(result, source):
		return source, true, nil
	case isInPlace || c.moves > 1 || isOrigin && source == nil && len(c.path) == 0:
		// What a moved value contains is copied with it. A whole result that replaces nothing is not
		// larger than the argument, and is only read.
		return result, false, nil
	}
	result, err = c.moved(result)
	return result, false, err
}

// isSameValue reports whether two values are the same object or the same list in memory.
func isSameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	}
	return false
}

// empty returns the value of an empty table.
func (c *converter) empty(source any) (any, bool, error) {
	switch source := source.(type) {
	case map[string]any:
		if len(source) == 0 {
			return source, true, nil
		}
	case []any:
		if len(source) == 0 {
			return source, true, nil
		}
	}
	if c.keepsEmpty {
		return map[string]any{}, false, nil
	}
	key := c.path.fields()
	text := strings.Join(key, "\x00")
	if err := c.reserve(len(text)); err != nil {
		return nil, false, err
	}
	value, isKnown := c.empties[text]
	if !isKnown {
		if value = emptyAt(c.inputs, key); value == nil {
			value = removed{}
		}
		if c.empties == nil {
			c.empties = map[string]any{}
		}
		c.empties[text] = value
		if err := c.use(len(c.inputs) * checkInterval); err != nil {
			return nil, false, err
		}
	}
	return freshEmpty(value), false, nil
}

// freshEmpty returns a new value, so that two fields of a result never share one.
func freshEmpty(value any) any {
	switch value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return value
}

// emptyAt returns the empty object or list that one of the values has at a path, or nil. The entries
// of a list are at the path of the list.
func emptyAt(values []any, fields []string) any {
	var found any
	for _, value := range values {
		switch value := value.(type) {
		case map[string]any:
			switch {
			case len(fields) > 0:
				if field, ok := value[fields[0]]; ok {
					found = emptyAt([]any{field}, fields[1:])
				}
			case len(value) == 0:
				found = map[string]any{}
			}
		case []any:
			if len(value) == 0 && len(fields) == 0 {
				found = []any{}
			} else {
				found = emptyAt(value, fields)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// path is the place of a value in a result: names of fields, and indexes of lists from 1.
type path []any

func (p path) String() string {
	const maxShown = 20
	var text strings.Builder
	for i, part := range p {
		if i == maxShown {
			text.WriteString("…")
			break
		}
		switch part := part.(type) {
		case string:
			if i > 0 {
				text.WriteString(".")
			}
			text.WriteString(keyText(lua.LString(part)))
		case int:
			text.WriteString("[" + strconv.Itoa(part) + "]")
		}
	}
	return text.String()
}

// fields returns the path without the indexes of lists.
func (p path) fields() []string {
	var fields []string
	for _, part := range p {
		if name, ok := part.(string); ok {
			fields = append(fields, name)
		}
	}
	return fields
}
