package script

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

const (
	// maxValues is the maximum number of values in a result.
	maxValues = 100_000
	// maxResultBytes is the maximum total length of the strings in a result.
	maxResultBytes = 8 << 20
	// maxResultDepth is the maximum nesting of a result.
	maxResultDepth = 200
)

// removed is the result for an empty table that is neither an object nor a list.
type removed struct{}

// converter converts one result to the types of unstructured objects.
type converter struct {
	*sandbox
	// inputs are the objects that decide whether an empty table is an object or a list.
	inputs []any
	values int
	bytes  int
	path   path
	// tables are the tables that contain the current value.
	tables []*lua.LTable
}

// convert converts a table to the types of unstructured objects. source is the value that the result
// replaces, or nil. start is the path of the value in messages and in inputs. An empty table of the
// script has the type that it has in inputs; without inputs, it is removed from its object. ifEmpty is
// the result for an empty table at the start.
func (s *sandbox) convert(value lua.LValue, source any, start path, ifEmpty any, inputs ...any) (any, error) {
	c := &converter{sandbox: s, inputs: inputs, path: start}
	result, err := c.value(value, source)
	if _, isRemoved := result.(removed); isRemoved {
		result = ifEmpty
	}
	return result, err
}

// value converts a value. source is the value at its place in an input, or nil.
func (c *converter) value(value lua.LValue, source any) (any, error) {
	switch value := value.(type) {
	case *lua.LNilType:
		return nil, c.count("")
	case lua.LBool:
		return bool(value), c.count("")
	case lua.LString:
		return c.text(string(value), source)
	case lua.LNumber:
		return c.number(float64(value), source)
	case *lua.LTable:
		return c.table(value, source)
	}
	return nil, c.refuse("is a " + value.Type().String() + ", which JSON does not have")
}

func (c *converter) refuse(problem string) error {
	if len(c.path) == 0 {
		return errors.New("the result " + problem)
	}
	return fmt.Errorf("the value at %s of the result %s", c.path, problem)
}

// count counts a value of the result, and its text.
func (c *converter) count(text string) error {
	c.values++
	c.bytes += len(text)
	switch {
	case c.values > maxValues:
		return fmt.Errorf("the result has more than %d values: return fewer fields and entries", maxValues)
	case c.bytes > maxResultBytes:
		return fmt.Errorf("the strings of the result exceed the limit of %d MiB in total", maxResultBytes>>20)
	}
	return c.ctx.Err()
}

// text converts a string. JSON would replace bytes that are not UTF-8.
func (c *converter) text(text string, source any) (any, error) {
	if source != text && !utf8.ValidString(text) {
		return nil, c.refuse("is a string that is not valid UTF-8: do not cut a character of several bytes")
	}
	return text, c.count(text)
}

func (c *converter) number(number float64, source any) (any, error) {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return nil, c.refuse(fmt.Sprintf("is the number %v, which JSON does not have", number))
	}
	if integer, ok := source.(int64); ok && float64(integer) == number || source == number {
		return source, c.count("")
	}
	if exact, ok := c.integers[number]; ok {
		return exact, c.count("")
	}
	return roundedNumber(number), c.count("")
}

// roundedNumber returns a number as int64 if it is an integer, and as float64 otherwise.
func roundedNumber(number float64) any {
	// Both limits are exact as float64.
	if number == math.Trunc(number) && number >= math.MinInt64 && number < math.MaxInt64 {
		return int64(number)
	}
	return number
}

// table converts a table.
func (c *converter) table(table *lua.LTable, source any) (any, error) {
	if err := c.count(""); err != nil {
		return nil, err
	}
	if slices.Contains(c.tables, table) {
		return nil, c.refuse("contains itself")
	}
	if len(c.tables) == maxResultDepth {
		return nil, c.refuse(fmt.Sprintf("is nested deeper than %d levels", maxResultDepth))
	}
	c.tables = append(c.tables, table)
	defer func() { c.tables = c.tables[:len(c.tables)-1] }()

	n, hasOrigin := c.nodes[table]
	if hasOrigin {
		if source = n.origin(); table.Metatable == c.lazy && n.fields == nil && n.entries == nil {
			return c.copied(source)
		}
		c.load(table)
	}
	length, start := table.MaxN(), lua.LNil
	if length > 0 {
		start = lua.LNumber(length)
	}
	key, value := table.Next(start)
	switch {
	case length > 0 && key != lua.LNil:
		return nil, c.refuse(fmt.Sprintf("has the entry 1 to %d and the key '%s' with a %s: a table is either a list or an object",
			length, keyText(key), value.Type()))
	case length > 0:
		return c.list(table, length, source, hasOrigin)
	case key != lua.LNil:
		return c.object(table, source, hasOrigin)
	}
	return c.empty(table, source, hasOrigin)
}

// copied returns a copy of a value that the script has not used.
func (c *converter) copied(value any) (any, error) {
	text, _ := value.(string)
	if err := c.count(text); err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i, entry := range value {
			var err error
			if list[i], err = c.copied(entry); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(value))
		for name, field := range value {
			var err error
			if object[name], err = c.copied(field); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return value, nil
}

// list converts a table with the entries 1 to length.
func (c *converter) list(table *lua.LTable, length int, source any, hasOrigin bool) (any, error) {
	original, isList := source.([]any)
	result := make([]any, 0, length)
	for i := range length {
		var before any
		if i < len(original) {
			before = original[i]
		}
		entry := table.RawGetInt(i + 1)
		if entry == lua.LNil && (!hasOrigin || !isList) {
			return nil, c.refuse(fmt.Sprintf("is a list with a gap: the entry %d is nil", i+1))
		}
		c.path = append(c.path, i+1)
		converted, err := c.value(entry, before)
		c.path = c.path[:len(c.path)-1]
		if err != nil {
			return nil, err
		}
		if _, isRemoved := converted.(removed); isRemoved {
			// A list has no field to remove.
			converted = map[string]any{}
		}
		result = append(result, converted)
	}
	if hasOrigin && visibleLength(original) == length {
		// A script does not see the null values at the end, so it did not remove them.
		result = append(result, original[length:]...)
	}
	return result, nil
}

// visibleLength returns the index of the last entry that is not null.
func visibleLength(list []any) int {
	length := len(list)
	for length > 0 && list[length-1] == nil {
		length--
	}
	return length
}

// object converts a table with names.
func (c *converter) object(table *lua.LTable, source any, hasOrigin bool) (any, error) {
	original, _ := source.(map[string]any)
	result := map[string]any{}
	if hasOrigin {
		// A script does not see fields that are null, so it did not remove them.
		for name, value := range original {
			if value == nil {
				result[name] = nil
			}
		}
	}
	for key, value := table.Next(lua.LNil); key != lua.LNil; key, value = table.Next(key) {
		text, isName := key.(lua.LString)
		if !isName {
			return nil, c.refuse(fmt.Sprintf("has the key '%s', which is a %s: "+
				"keys must be strings, or the numbers 1, 2, 3 and so on without a gap", keyText(key), key.Type()))
		}
		name := string(text)
		before, exists := original[name]
		if !exists && !utf8.ValidString(name) {
			return nil, c.refuse(fmt.Sprintf("has the key %q, which is not valid UTF-8", shorten(name)))
		}
		c.bytes += len(name)
		c.path = append(c.path, name)
		converted, err := c.value(value, before)
		c.path = c.path[:len(c.path)-1]
		if err != nil {
			return nil, err
		}
		if _, isRemoved := converted.(removed); !isRemoved {
			result[name] = converted
		}
	}
	return result, nil
}

// empty returns the value of an empty table.
func (c *converter) empty(table *lua.LTable, source any, hasOrigin bool) (any, error) {
	switch source := source.(type) {
	case map[string]any:
		if len(source) == 0 {
			return map[string]any{}, nil
		}
		if nulls, err := c.object(table, source, hasOrigin); err != nil || len(nulls.(map[string]any)) > 0 {
			return nulls, err
		}
	case []any:
		if len(source) == 0 || hasOrigin && visibleLength(source) == 0 {
			return slices.Clone(source), nil
		}
	}
	if found := emptyAt(c.inputs, c.path.fields()); found != nil {
		return found, nil
	}
	return removed{}, nil
}

// emptyAt returns a new object or list if one of the values has an empty one at a path, or nil. The
// entries of a list are at the path of the list.
func emptyAt(values []any, fields []string) any {
	for _, value := range values {
		var found any
		switch value := value.(type) {
		case map[string]any:
			if len(fields) > 0 {
				found = emptyAt([]any{value[fields[0]]}, fields[1:])
			} else if len(value) == 0 {
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

// keyText returns a key for a message.
func keyText(key lua.LValue) string {
	const maxKey = 100
	text := key.String()
	if len(text) > maxKey {
		return strings.ToValidUTF8(text[:maxKey], "") + "…"
	}
	return text
}
