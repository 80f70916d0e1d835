package override

import (
	"fmt"
	"strconv"
	"strings"
)

// pointer is a JSON pointer (RFC 6901) taken apart. The empty pointer is the whole
// document.
type pointer []string

// parsePointer splits a JSON pointer. A tilde that begins no escape stands for
// itself, as in the JSON patch library that policies were first written against.
func parsePointer(text string) (pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, mismatchf(text, `begin the path with "/"`, "path %q is no JSON pointer", text)
	}
	tokens := strings.Split(text[1:], "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, token := range tokens {
		tokens[i] = unescape.Replace(token)
	}
	return tokens, nil
}

// String is the pointer in its written form.
func (p pointer) String() string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var text strings.Builder
	for _, token := range p {
		text.WriteString("/" + escape.Replace(token))
	}
	return text.String()
}

// get is the value that the pointer leads to.
func (p pointer) get(document any) (any, error) {
	node := document
	for depth, token := range p {
		switch parent := node.(type) {
		case map[string]any:
			child, found := parent[token]
			if !found {
				return nil, p.missing(depth)
			}
			node = child
		case []any:
			index, err := p.index(depth, len(parent))
			if err != nil {
				return nil, err
			}
			node = parent[index]
		default:
			return nil, p.leaf(depth, node)
		}
	}
	return node, nil
}

// index reads the token at depth as a position in a list of the given length.
// Negative positions count from the end: -1 is the last element. That is no part
// of JSON pointers, but policies in the field rely on it.
func (p pointer) index(depth, length int) (int, error) {
	index, err := strconv.Atoi(p[depth])
	if err != nil {
		return 0, mismatchf(p.String(), "give the position in the list as a number", "%q is no list index", p[depth])
	}
	if index < -length || index >= length {
		return 0, mismatchf(p.String(), "", "index %d is outside a list of %d", index, length)
	}
	if index < 0 {
		index += length
	}
	return index, nil
}

func (p pointer) missing(depth int) error {
	return &mismatchError{
		path: p.String(), orphan: depth < len(p)-1, err: fmt.Errorf("there is no field %q", p[:depth+1].String()),
	}
}

func (p pointer) leaf(depth int, node any) error {
	return &mismatchError{
		path: p.String(), orphan: true, err: fmt.Errorf("%q is %s, it has no fields", p[:depth].String(), describe(node)),
	}
}

// describe names the JSON type of a value.
func describe(node any) string {
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
