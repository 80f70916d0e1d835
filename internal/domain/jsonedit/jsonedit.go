// Package jsonedit reads and changes single fields of JSON documents.
//
// Most functions work on a document's text without decoding it, because API servers return lists with
// thousands of objects of which only a few fields change. All other bytes stay unchanged, so that
// numbers keep their precision and fields keep their order. A Pointer refers to a value in a decoded
// document. Equal and Marshal compare and encode decoded values without reflection.
//
// Invariants:
//   - Invalid JSON causes an error or an invalid result, but never a panic. Callers must first validate
//     texts from other servers with json.Valid.
//   - If a field on the path occurs twice in its object, the function returns an error, because
//     decoders disagree about which of the two counts.
package jsonedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

var (
	errInvalid   = errors.New("the JSON is invalid")
	errNotObject = errors.New("not a JSON object")
	errNotArray  = errors.New("not a JSON array")
)

// child is the position of a field in an object, or of an element in an array. Positions are byte
// offsets.
type child struct {
	// key is the decoded key of a field. keyStart is the position of its opening quote.
	key      string
	keyStart int
	// The value begins at start and ends before end.
	start, end int
}

// EachField calls yield with the key and the value of each of the object's fields, until yield returns
// false.
func EachField(object []byte, yield func(key string, value []byte) bool) error {
	return eachChild(object, '{', func(at child) bool { return yield(at.key, object[at.start:at.end]) })
}

// EachElement calls yield with each element of the array, and stops at yield's first error.
func EachElement(array []byte, yield func(element []byte) error) (err error) {
	if invalid := eachChild(array, '[', func(at child) bool {
		err = yield(array[at.start:at.end])
		return err == nil
	}); invalid != nil {
		return invalid
	}
	return err
}

// eachChild calls yield with each field of an object or each element of an array, until yield returns
// false. opening is '{' for an object and '[' for an array.
func eachChild(document []byte, opening byte, yield func(child) bool) error {
	isObject := opening == '{'
	i := skipSpace(document, 0)
	if i >= len(document) || document[i] != opening {
		if isObject {
			return errNotObject
		}
		return errNotArray
	}
	closing := opening + 2 // in ASCII, '}' is '{'+2 and ']' is '['+2
	for i = skipSpace(document, i+1); i < len(document) && document[i] != closing; {
		at := child{keyStart: i, start: i}
		if isObject {
			var ok bool
			if at.key, at.start, ok = readKey(document, i); !ok {
				return errInvalid
			}
		}
		if at.end = valueEnd(document, at.start); at.end == 0 {
			return errInvalid
		}
		if !yield(at) {
			return nil
		}
		if i = skipSpace(document, at.end); i < len(document) && document[i] == ',' {
			i = skipSpace(document, i+1)
		}
	}
	if i >= len(document) {
		return errInvalid
	}
	return nil
}

// readKey returns the field's key that begins at start, and the position of the field's value.
func readKey(document []byte, start int) (key string, value int, ok bool) {
	end := valueEnd(document, start)
	if key, ok = unquote(document[start:max(start, end)]); !ok {
		return "", 0, false
	}
	colon := skipSpace(document, end)
	if colon >= len(document) || document[colon] != ':' {
		return "", 0, false
	}
	return key, skipSpace(document, colon+1), true
}

// Get returns the value at the given path of keys, or nil if there is none.
func Get(object []byte, path ...string) ([]byte, error) {
	for _, key := range path {
		if object == nil || isNull(object) {
			return nil, nil
		}
		at, found, err := find(object, key)
		if err != nil || !found {
			return nil, err
		}
		object = object[at.start:at.end]
	}
	return object, nil
}

// GetString returns the string at the given path of keys, or an empty string if there is none.
func GetString(object []byte, path ...string) (string, error) {
	value, err := Get(object, path...)
	if err != nil || value == nil || isNull(value) {
		return "", err
	}
	text, ok := unquote(value)
	if !ok {
		return "", fmt.Errorf("%s: not a string", path[len(path)-1])
	}
	return text, nil
}

// Set appends to dst a copy of object with value at the given path of keys. It creates missing objects
// on the path.
func Set(dst, object, value []byte, path ...string) ([]byte, error) {
	if len(path) == 0 {
		return append(dst, value...), nil
	}
	at, found, err := find(object, path[0])
	if err != nil {
		return dst, fmt.Errorf("%s: %w", path[0], err)
	}
	if found {
		inner := object[at.start:at.end]
		if isNull(inner) {
			inner = []byte("{}")
		}
		dst = append(dst, object[:at.start]...)
		if dst, err = Set(dst, inner, value, path[1:]...); err != nil {
			return dst, err
		}
		return append(dst, object[at.end:]...), nil
	}
	// Insert the new field as the first one.
	first := bytes.IndexByte(object, '{') + 1
	dst = append(dst, object[:first]...)
	for i, key := range path {
		if i > 0 {
			dst = append(dst, '{')
		}
		dst = append(append(dst, Quote(key)...), ':')
	}
	dst = append(dst, value...)
	dst = append(dst, bytes.Repeat([]byte("}"), len(path)-1)...)
	if rest := skipSpace(object, first); rest < len(object) && object[rest] != '}' {
		dst = append(dst, ',')
	}
	return append(dst, object[first:]...), nil
}

// Remove appends to dst a copy of object without the value at the given path of keys.
func Remove(dst, object []byte, path ...string) ([]byte, error) {
	at, found, err := find(object, path[0])
	switch {
	case err != nil:
		return dst, fmt.Errorf("%s: %w", path[0], err)
	case !found, len(path) > 1 && isNull(object[at.start:at.end]):
		return append(dst, object...), nil
	case len(path) > 1:
		dst = append(dst, object[:at.start]...)
		if dst, err = Remove(dst, object[at.start:at.end], path[1:]...); err != nil {
			return dst, err
		}
		return append(dst, object[at.end:]...), nil
	}
	start, end := at.keyStart, skipSpace(object, at.end)
	if end < len(object) && object[end] == ',' {
		end++
	} else if before := bytes.TrimRight(object[:start], " \t\r\n"); bytes.HasSuffix(before, []byte(",")) {
		// The comma of the last field is before the field.
		start = len(before) - 1
	}
	return append(append(dst, object[:start]...), object[end:]...), nil
}

// Append appends to dst a copy of array with element as the last element.
func Append(dst, array, element []byte) ([]byte, error) {
	end := 0
	if err := eachChild(array, '[', func(at child) bool { end = at.end; return true }); err != nil {
		return dst, err
	}
	if end == 0 {
		dst = append(dst, '[')
	} else {
		dst = append(append(dst, array[:end]...), ',')
	}
	return append(append(dst, element...), ']'), nil
}

// Quote returns text as a JSON string.
func Quote(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		// A string can always be encoded.
		return []byte(`""`)
	}
	return quoted
}

// find returns the position of the field with the given key. It returns an error if the field occurs
// twice.
func find(object []byte, key string) (position child, found bool, err error) {
	isDuplicate := false
	err = eachChild(object, '{', func(at child) bool {
		if at.key == key {
			isDuplicate = found
			position, found = at, true
		}
		return !isDuplicate
	})
	if isDuplicate {
		err = fmt.Errorf("field %q occurs twice", key)
	}
	return position, found, err
}

func isNull(value []byte) bool { return string(bytes.TrimSpace(value)) == "null" }

func skipSpace(document []byte, i int) int {
	for i < len(document) && (document[i] == ' ' || document[i] == '\n' || document[i] == '\t' || document[i] == '\r') {
		i++
	}
	return i
}

// valueEnd returns the position after the value that begins at start, or 0 if no value begins there.
func valueEnd(document []byte, start int) int {
	i, depth := start, 0
scan:
	for ; i < len(document); i++ {
		switch document[i] {
		case '"':
			if i = closingQuote(document, i); i >= len(document) {
				return 0
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				break scan // the end of a number or literal
			}
			depth--
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				break scan
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	if depth > 0 || i == start {
		return 0
	}
	return i
}

// closingQuote returns the position of the quote that ends the string that begins at start. If there is
// none, it returns a position beyond the document.
func closingQuote(document []byte, start int) int {
	i := start + 1
	for ; i < len(document) && document[i] != '"'; i++ {
		if document[i] == '\\' {
			i++
		}
	}
	return i
}

// unquote decodes a JSON string. ok is false if the string is invalid.
func unquote(quoted []byte) (text string, ok bool) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return "", false
	}
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	err := json.Unmarshal(quoted, &text)
	return text, err == nil
}
