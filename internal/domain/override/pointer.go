package override

import (
	"fmt"
	"strconv"
	"strings"
)

// pointer is a parsed JSON pointer (RFC 6901). The empty pointer refers to the whole
// document.
type pointer []string

// parsePointer parses a JSON pointer. Like the JSON patch library of upstream Karmada, it keeps a
// tilde that does not begin an escape sequence.
func parsePointer(text string) (pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, mismatchf(text, `begin the path with "/"`, "path %q is not a JSON pointer", text)
	}
	tokens := strings.Split(text[1:], "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, token := range tokens {
		tokens[i] = unescape.Replace(token)
	}
	return tokens, nil
}

// String returns the pointer in its text form.
func (p pointer) String() string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var text strings.Builder
	for _, token := range p {
		text.WriteString("/" + escape.Replace(token))
	}
	return text.String()
}

// get returns the value at the pointer.
func (p pointer) get(document any) (any, error) {
	node := document
	for depth, token := range p {
		switch parent := node.(type) {
		case map[string]any:
			child, found := parent[token]
			if !found {
				return nil, p.missingFieldError(depth)
			}
			node = child
		case []any:
			index, err := p.listIndex(depth, len(parent))
			if err != nil {
				return nil, err
			}
			node = parent[index]
		default:
			return nil, p.noFieldsError(depth, node)
		}
	}
	return node, nil
}

// listIndex parses the token at depth as an index into a list of the given length. Negative indexes
// count from the end: -1 is the last element. JSON pointers do not define negative indexes, but
// existing policies rely on them.
func (p pointer) listIndex(depth, length int) (int, error) {
	index, err := strconv.Atoi(p[depth])
	if err != nil {
		return 0, mismatchf(p.String(), "give the position in the list as a number", "%q is not a list index", p[depth])
	}
	if index < -length || index >= length {
		return 0, mismatchf(p.String(), "", "index %d is outside a list of %d", index, length)
	}
	if index < 0 {
		index += length
	}
	return index, nil
}

func (p pointer) missingFieldError(depth int) error {
	return &mismatchError{
		path: p.String(), parentMissing: depth < len(p)-1, err: fmt.Errorf("there is no field %q", p[:depth+1].String()),
	}
}

func (p pointer) noFieldsError(depth int, node any) error {
	return &mismatchError{
		path: p.String(), parentMissing: true, err: fmt.Errorf("%q is %s, it has no fields", p[:depth].String(), typeName(node)),
	}
}

// typeName returns the JSON type of a value.
func typeName(node any) string {
	switch node.(type) {
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
