package script

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// plain converts a table whose Lua fields are complete. n is its node, if it was loaded.
func (c *converter) plain(table *lua.LTable, n *node, source any) (any, bool, error) {
	end := table.MaxN()
	if err := c.use(1 + c.holes/holesPerStep); err != nil {
		return nil, false, err
	}
	start := lua.LNil
	if end > 0 {
		start = lua.LNumber(end)
	}
	key, value := table.Next(start)
	switch {
	case end == 0 && key == lua.LNil && n.hasOnlyNulls():
		return n.value(), true, nil
	case end == 0 && key == lua.LNil && n.hasNullField():
		return c.object(table, n, source)
	case end == 0 && key == lua.LNil:
		return c.empty(source)
	case end == 0:
		return c.object(table, n, source)
	case key == lua.LNil:
		return c.list(table, n, end, source)
	default:
		return nil, false, c.refuse(fmt.Sprintf("has the entry 1 to %d and the key '%s' with a %s: a table is either a list or an object", end, keyText(key), value.Type()))
	}
}

// list converts a table with the entries 1 to length.
func (c *converter) list(table *lua.LTable, n *node, length int, source any) (any, bool, error) {
	original, _ := source.([]any)
	isSource := len(original) == length
	if n != nil && n.list != nil && len(original) > length {
		isSource = n.length() == length
	}
	if length > c.limits.Result-c.count {
		return nil, false, fmt.Errorf("the result has more than %d values", c.limits.Result)
	}
	result := make([]any, 0, length)
	for i := range length {
		var before any
		if i < len(original) {
			before = original[i]
		}
		entry := table.RawGetInt(i + 1)
		if entry == lua.LNil && (n == nil || n.list == nil) {
			return nil, false, c.refuse(fmt.Sprintf("is a list with a gap: the entry %d is nil", i+1))
		}
		c.path = append(c.path, i+1)
		converted, isSame, err := c.against(entry, before)
		c.path = c.path[:len(c.path)-1]
		if err != nil {
			return nil, false, err
		}
		if _, isRemoved := converted.(removed); isRemoved {
			// A list has no field to remove.
			converted = map[string]any{}
		}
		isSource = isSource && isSame
		result = append(result, converted)
	}
	if isSource {
		return source, true, nil
	}
	if n != nil && n.length() == length && len(n.list) > length {
		// A script does not see the null values at the end, so it did not remove them.
		result = append(result, n.list[length:]...)
	}
	return result, false, nil
}

// object converts a table with names.
func (c *converter) object(table *lua.LTable, n *node, source any) (any, bool, error) {
	original, isObject := source.(map[string]any)
	result, same := map[string]any{}, 0
	isSource := isObject
	for key, value := table.Next(lua.LNil); key != lua.LNil; key, value = table.Next(key) {
		name, isName := key.(lua.LString)
		if !isName {
			return nil, false, c.refuse(fmt.Sprintf("has the key '%s', which is a %s: keys must be strings, or the numbers 1, 2, 3 and so on without a gap", keyText(key), key.Type()))
		}
		before, exists := original[string(name)]
		converted, isSame, err := c.field(string(name), value, before)
		if err != nil {
			return nil, false, err
		}
		if _, isRemoved := converted.(removed); isRemoved {
			isSource = isSource && !exists
			continue
		}
		isSource = isSource && exists && isSame
		same++
		result[string(name)] = converted
	}
	// A script does not see fields that are null, so it did not remove them.
	for name, value := range original {
		if value == nil && n != nil {
			if _, isSet := result[name]; !isSet {
				result[name] = nil
				same++
			}
		}
	}
	if isSource && same == len(original) {
		return source, true, nil
	}
	return result, false, nil
}

func (c *converter) field(name string, value lua.LValue, before any) (any, bool, error) {
	if before == nil {
		if !utf8.ValidString(name) {
			return nil, false, c.refuse(fmt.Sprintf("has the key %q, which is not valid UTF-8", shorten(name)))
		}
		if err := c.reserve(textBytes * len(name)); err != nil {
			return nil, false, err
		}
	}
	c.path = append(c.path, name)
	converted, isSame, err := c.against(value, before)
	c.path = c.path[:len(c.path)-1]
	return converted, isSame, err
}

// overlaid converts a table whose missing Lua fields are those of its origin.
func (c *converter) overlaid(table *lua.LTable, n *node, origin any) (any, bool, error) {
	if n.object == nil {
		return c.overlaidList(n)
	}
	o := overlay{origin: n.object, result: n.object}
	for _, child := range n.small {
		if err := c.overlayField(&o, n, child.name, child.table); err != nil {
			return nil, false, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		if err := c.overlayField(&o, n, name, n.children[name]); err != nil {
			return nil, false, err
		}
	}
	for _, name := range n.written {
		if err := c.overlayWritten(&o, name, table.RawGetString(name)); err != nil {
			return nil, false, err
		}
	}
	if o.isCopied && len(o.result) == 0 {
		return c.empty(origin)
	}
	return o.result, !o.isCopied, nil
}

// overlay is an object that is copied before its first change.
type overlay struct {
	origin, result map[string]any
	isCopied       bool
}

func (c *converter) setField(o *overlay, name string, value any) error {
	if !o.isCopied {
		if err := c.reserve(cloneBytes * len(o.origin)); err != nil {
			return err
		}
		o.result, o.isCopied = maps.Clone(o.origin), true
	}
	if _, isRemoved := value.(removed); isRemoved {
		delete(o.result, name)
		return nil
	}
	o.result[name] = value
	return nil
}

// overlayField adds a field that the script has read and not set.
func (c *converter) overlayField(o *overlay, n *node, name string, table *lua.LTable) error {
	if slices.Contains(n.written, name) {
		return nil
	}
	converted, isSame, err := c.field(name, table, n.object[name])
	if err == nil && !isSame {
		return c.setField(o, name, converted)
	}
	return err
}

// overlayWritten adds a field that the script has set.
func (c *converter) overlayWritten(o *overlay, name string, value lua.LValue) error {
	before, exists := o.origin[name]
	if value == lua.LNil {
		if exists {
			return c.setField(o, name, removed{})
		}
		return nil
	}
	converted, isSame, err := c.field(name, value, before)
	if err != nil {
		return err
	}
	if _, isRemoved := converted.(removed); isRemoved && !exists {
		return nil
	}
	if !isSame || !exists {
		return c.setField(o, name, converted)
	}
	return nil
}

func (c *converter) overlaidList(n *node) (any, bool, error) {
	result := n.list
	isCopied := false
	for i, table := range n.entries {
		if table == nil {
			continue
		}
		c.path = append(c.path, i+1)
		converted, isSame, err := c.against(table, n.list[i])
		c.path = c.path[:len(c.path)-1]
		if err != nil {
			return nil, false, err
		}
		if isSame {
			continue
		}
		if !isCopied {
			if err := c.reserve(cloneBytes * len(n.list)); err != nil {
				return nil, false, err
			}
			result, isCopied = append([]any(nil), n.list...), true
		}
		if _, isRemoved := converted.(removed); isRemoved {
			converted = map[string]any{}
		}
		result[i] = converted
	}
	return result, !isCopied, nil
}
