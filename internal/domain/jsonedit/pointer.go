package jsonedit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Pointer is a parsed JSON pointer (RFC 6901) into a document that consists of the types of unstructured
// objects. The empty pointer refers to the whole document. Negative indexes count from the end of a list:
// -1 is the last entry. JSON pointers do not define negative indexes, but upstream Karmada's library accepts
// them, and existing policies rely on them.
type Pointer []string

// PointerError means that a text is not a JSON pointer, or that a pointer refers to no value in the
// document.
type PointerError struct {
	// Pointer is the pointer's text.
	Pointer string
	// ParentMissing reports whether the object or list that should contain the value is missing too.
	ParentMissing bool
	// Remedy is a hint for the author of the pointer, as an imperative clause. It may be empty.
	Remedy string

	problem string
}

func (e *PointerError) Error() string { return e.problem }

// ParsePointer parses a JSON pointer. Like upstream Karmada's JSON patch library, it keeps a tilde that
// does not begin an escape sequence. Its errors are of type PointerError.
func ParsePointer(text string) (Pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, &PointerError{Pointer: text, Remedy: `begin the path with "/"`, problem: fmt.Sprintf("path %q is not a JSON pointer", text)}
	}
	tokens := strings.Split(text[1:], "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, token := range tokens {
		tokens[i] = unescape.Replace(token)
	}
	return tokens, nil
}

// String returns the pointer in its text form.
func (p Pointer) String() string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var text strings.Builder
	for _, token := range p {
		text.WriteString("/" + escape.Replace(token))
	}
	return text.String()
}

// IsWithin reports whether p refers to the value to which parent refers, or to a part of it.
func (p Pointer) IsWithin(parent Pointer) bool {
	return len(p) >= len(parent) && slices.Equal(p[:len(parent)], parent)
}

// Get returns the value at the pointer. Its errors are of type PointerError.
func (p Pointer) Get(document any) (any, error) {
	node := document
	for depth, token := range p {
		switch parent := node.(type) {
		case map[string]any:
			child, found := parent[token]
			if !found {
				return nil, p.missingField(depth)
			}
			node = child
		case []any:
			index, err := p.listIndex(depth, len(parent), len(parent))
			if err != nil {
				return nil, err
			}
			node = parent[index]
		default:
			return nil, p.noFields(depth, node)
		}
	}
	return node, nil
}

// operation is a JSON Patch operation (RFC 6902).
type operation string

const (
	add     operation = "add"
	replace operation = "replace"
	remove  operation = "remove"
)

// Add sets a field of an object, or inserts an entry into a list. The token "-" appends to a list.
//
// Add, Replace and Remove change the document in place and return it. If the pointer refers to the whole
// document, they return the new document instead. The value becomes part of the document and must not be
// used elsewhere. Errors are of type PointerError, and leave the document unchanged.
func (p Pointer) Add(document, value any) (changed any, err error) {
	return p.edit(0, document, add, value)
}

// Replace replaces an existing value. See Add.
func (p Pointer) Replace(document, value any) (changed any, err error) {
	return p.edit(0, document, replace, value)
}

// Remove removes an existing value. A whole document cannot be removed. See Add.
func (p Pointer) Remove(document any) (changed any, err error) {
	return p.edit(0, document, remove, nil)
}

// edit performs an operation in node, which is the value to which the first depth tokens of p refer.
func (p Pointer) edit(depth int, node any, do operation, value any) (changed any, err error) {
	if len(p) == 0 {
		if do == remove {
			return nil, &PointerError{Remedy: "name the field to remove", problem: "a whole document cannot be removed"}
		}
		return value, nil
	}
	switch parent := node.(type) {
	case map[string]any:
		return p.editObject(depth, parent, do, value)
	case []any:
		return p.editList(depth, parent, do, value)
	}
	return nil, p.noFields(depth, node)
}

func (p Pointer) editObject(depth int, object map[string]any, do operation, value any) (changed any, err error) {
	child, found := object[p[depth]]
	isLast := depth == len(p)-1
	switch {
	case !found && (!isLast || do != add):
		return nil, p.missingField(depth)
	case !isLast:
		if value, err = p.edit(depth+1, child, do, value); err != nil {
			return nil, err
		}
	case do == remove:
		delete(object, p[depth])
		return object, nil
	}
	object[p[depth]] = value
	return object, nil
}

func (p Pointer) editList(depth int, list []any, do operation, value any) (changed any, err error) {
	isLast, positions := depth == len(p)-1, len(list)
	if isLast && do == add {
		if p[depth] == "-" {
			return append(list, value), nil
		}
		// An entry can also be inserted after the last entry.
		positions++
	}
	index, err := p.listIndex(depth, len(list), positions)
	switch {
	case err != nil:
		return nil, err
	case !isLast:
		if value, err = p.edit(depth+1, list[index], do, value); err != nil {
			return nil, err
		}
	case do == add:
		return slices.Insert(list, index, value), nil
	case do == remove:
		return slices.Delete(list, index, index+1), nil
	}
	list[index] = value
	return list, nil
}

// listIndex parses the token at depth as an index into a list of the given length. positions is the
// number of valid non-negative indexes.
func (p Pointer) listIndex(depth, length, positions int) (int, error) {
	index, err := strconv.Atoi(p[depth])
	if err != nil {
		return 0, &PointerError{Pointer: p.String(), Remedy: "give the position in the list as a number",
			problem: fmt.Sprintf("%q is not a list index", p[depth])}
	}
	if index < -positions || index >= positions {
		return 0, &PointerError{Pointer: p.String(), problem: fmt.Sprintf("index %d is outside a list of %d", index, length)}
	}
	if index < 0 {
		index += positions
	}
	return index, nil
}

func (p Pointer) missingField(depth int) error {
	return &PointerError{Pointer: p.String(), ParentMissing: depth < len(p)-1,
		problem: fmt.Sprintf("there is no field %q", p[:depth+1].String())}
}

func (p Pointer) noFields(depth int, node any) error {
	return &PointerError{Pointer: p.String(), ParentMissing: true,
		problem: fmt.Sprintf("%q is %s, it has no fields", p[:depth].String(), TypeName(node))}
}

// TypeName returns the value's JSON type with an article, such as "a string".
func TypeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}
