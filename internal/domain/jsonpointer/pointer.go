// Package jsonpointer answers: which value of a JSON document does a pointer (RFC 6901) refer to, and
// how does the document look with another value there? Documents consist of the types of unstructured
// objects.
package jsonpointer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Pointer is a parsed JSON pointer. The empty pointer refers to the whole document. Negative indexes
// count from the end of a list: -1 is the last entry. JSON pointers do not define negative indexes, but
// the library of upstream Karmada accepts them, and existing policies rely on them.
type Pointer []string

// Error means that a text is no pointer, or that a pointer does not refer to a value of a document.
type Error struct {
	// Pointer is the text of the pointer.
	Pointer string
	// ParentMissing reports whether the document does not have the object or list that should contain
	// the value either.
	ParentMissing bool
	// Remedy is a hint for the author of the pointer, as an imperative clause. It may be empty.
	Remedy string

	problem string
}

func (e *Error) Error() string { return e.problem }

// Parse parses a JSON pointer. Like the JSON patch library of upstream Karmada, it keeps a tilde that
// does not begin an escape sequence. Its errors are of type Error.
func Parse(text string) (Pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, &Error{Pointer: text, Remedy: `begin the path with "/"`, problem: fmt.Sprintf("path %q is not a JSON pointer", text)}
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

// IsWithin reports whether p refers to the value of parent or to a part of it.
func (p Pointer) IsWithin(parent Pointer) bool {
	return len(p) >= len(parent) && slices.Equal(p[:len(parent)], parent)
}

// Get returns the value at the pointer. Its errors are of type Error.
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

// listIndex parses the token at depth as an index into a list of the given length. positions is the
// number of valid indexes.
func (p Pointer) listIndex(depth, length, positions int) (int, error) {
	index, err := strconv.Atoi(p[depth])
	if err != nil {
		return 0, &Error{Pointer: p.String(), Remedy: "give the position in the list as a number", problem: fmt.Sprintf("%q is not a list index", p[depth])}
	}
	if index < -positions || index >= positions {
		return 0, &Error{Pointer: p.String(), problem: fmt.Sprintf("index %d is outside a list of %d", index, length)}
	}
	if index < 0 {
		index += positions
	}
	return index, nil
}

func (p Pointer) missingField(depth int) error {
	return &Error{Pointer: p.String(), ParentMissing: depth < len(p)-1, problem: fmt.Sprintf("there is no field %q", p[:depth+1].String())}
}

func (p Pointer) noFields(depth int, node any) error {
	return &Error{Pointer: p.String(), ParentMissing: true, problem: fmt.Sprintf("%q is %s, it has no fields", p[:depth].String(), TypeName(node))}
}

// TypeName returns the JSON type of a value with its article, such as "a string".
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
