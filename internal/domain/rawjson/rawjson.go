// Package rawjson answers: how are single fields of a JSON document read and changed without
// decoding the document?
//
// The documents are responses of API servers with thousands of objects. A few fields of each object
// change. All other bytes stay as they are, so that numbers keep their precision and fields their
// order.
//
// Invariants:
//   - Documents must be valid JSON, which Valid checks. A function returns an error, and
//     never panics, if a document is invalid.
//   - A field that occurs twice in an object is an error, because decoders disagree about
//     which one counts.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

var (
	errInvalid  = errors.New("the JSON is invalid")
	errNoObject = errors.New("not a JSON object")
	errNoArray  = errors.New("not a JSON array")
)

// Valid reports whether a document is valid JSON.
func Valid(document []byte) bool { return json.Valid(document) }

// field is the position of a field in an object.
type field struct {
	// keyStart is the position of the quote before the key. valueStart and valueEnd enclose the
	// value.
	keyStart, valueStart, valueEnd int
}

// EachField calls yield for each field of an object with its key and its raw value, until yield
// returns false.
func EachField(object []byte, yield func(key string, value []byte) bool) error {
	return eachField(object, func(key string, at field) bool { return yield(key, object[at.valueStart:at.valueEnd]) })
}

func eachField(object []byte, yield func(key string, at field) bool) error {
	i, err := enter(object, '{', errNoObject)
	if err != nil {
		return err
	}
	for i = skipSpace(object, i); i < len(object) && object[i] != '}'; i = skipSpace(object, i) {
		if object[i] == ',' {
			i = skipSpace(object, i+1)
		}
		at := field{keyStart: i}
		end, ok := skipString(object, i)
		if !ok {
			return errInvalid
		}
		key, ok := unquote(object[i:end])
		if i = skipSpace(object, end); !ok || i >= len(object) || object[i] != ':' {
			return errInvalid
		}
		at.valueStart = skipSpace(object, i+1)
		if at.valueEnd, ok = skipValue(object, at.valueStart); !ok {
			return errInvalid
		}
		if !yield(key, at) {
			return nil
		}
		i = at.valueEnd
	}
	if i >= len(object) {
		return errInvalid
	}
	return nil
}

// EachElement calls yield for each element of an array. An error of yield ends it.
func EachElement(array []byte, yield func(element []byte) error) error {
	i, err := enter(array, '[', errNoArray)
	if err != nil {
		return err
	}
	for i = skipSpace(array, i); i < len(array) && array[i] != ']'; i = skipSpace(array, i) {
		if array[i] == ',' {
			i = skipSpace(array, i+1)
		}
		end, ok := skipValue(array, i)
		if !ok {
			return errInvalid
		}
		if err := yield(array[i:end]); err != nil {
			return err
		}
		i = end
	}
	if i >= len(array) {
		return errInvalid
	}
	return nil
}

// Get returns the raw value at a path of keys. It returns nil if there is none.
func Get(object []byte, path ...string) ([]byte, error) {
	for _, key := range path {
		if object == nil || isNull(object) {
			return nil, nil
		}
		at, found, err := find(object, key)
		if err != nil || !found {
			return nil, err
		}
		object = object[at.valueStart:at.valueEnd]
	}
	return object, nil
}

// GetString returns the string at a path of keys. It returns an empty string if there is none.
func GetString(object []byte, path ...string) (string, error) {
	raw, err := Get(object, path...)
	if err != nil || raw == nil || isNull(raw) {
		return "", err
	}
	text, ok := unquote(raw)
	if !ok {
		return "", fmt.Errorf("%s: not a string", path[len(path)-1])
	}
	return text, nil
}

// Set appends to dst a copy of the object with the raw value at a path of keys. It creates missing
// objects of the path.
func Set(dst, object, value []byte, path ...string) ([]byte, error) {
	if len(path) == 0 {
		return append(dst, value...), nil
	}
	at, found, err := find(object, path[0])
	if err != nil {
		return dst, fmt.Errorf("%s: %w", path[0], err)
	}
	if found {
		inner := object[at.valueStart:at.valueEnd]
		if isNull(inner) {
			inner = []byte("{}")
		}
		dst = append(dst, object[:at.valueStart]...)
		if dst, err = Set(dst, inner, value, path[1:]...); err != nil {
			return dst, err
		}
		return append(dst, object[at.valueEnd:]...), nil
	}
	// The new field becomes the first one.
	open := bytes.IndexByte(object, '{') + 1
	dst = append(dst, object[:open]...)
	dst = append(dst, Quote(path[0])...)
	dst = append(dst, ':')
	for _, key := range path[1:] {
		dst = append(dst, '{')
		dst = append(dst, Quote(key)...)
		dst = append(dst, ':')
	}
	dst = append(dst, value...)
	dst = append(dst, bytes.Repeat([]byte("}"), len(path)-1)...)
	if rest := skipSpace(object, open); rest < len(object) && object[rest] != '}' {
		dst = append(dst, ',')
	}
	return append(dst, object[open:]...), nil
}

// Remove appends to dst a copy of the object without the value at a path of keys.
func Remove(dst, object []byte, path ...string) ([]byte, error) {
	at, found, err := find(object, path[0])
	switch {
	case err != nil:
		return dst, fmt.Errorf("%s: %w", path[0], err)
	case !found:
		return append(dst, object...), nil
	case len(path) > 1:
		inner := object[at.valueStart:at.valueEnd]
		dst = append(dst, object[:at.valueStart]...)
		if isNull(inner) {
			return append(dst, object[at.valueStart:]...), nil
		}
		if dst, err = Remove(dst, inner, path[1:]...); err != nil {
			return dst, err
		}
		return append(dst, object[at.valueEnd:]...), nil
	}
	start, end := at.keyStart, skipSpace(object, at.valueEnd)
	if end < len(object) && object[end] == ',' {
		end++
	} else if before := bytes.TrimRight(object[:start], " \t\r\n"); len(before) > 0 && before[len(before)-1] == ',' {
		// The last field: its comma is before it.
		start = len(before) - 1
	}
	dst = append(dst, object[:start]...)
	return append(dst, object[end:]...), nil
}

// Quote returns a text as a JSON string.
func Quote(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		// A string can always be encoded.
		return []byte(`""`)
	}
	return quoted
}

// find returns the position of a field. A field that occurs twice is an error.
func find(object []byte, key string) (at field, found bool, err error) {
	duplicate := false
	err = eachField(object, func(name string, position field) bool {
		if name == key {
			duplicate = found
			at, found = position, true
		}
		return !duplicate
	})
	if duplicate {
		return at, true, fmt.Errorf("field %q occurs twice", key)
	}
	return at, found, err
}

func isNull(value []byte) bool { return string(bytes.TrimSpace(value)) == "null" }

// enter returns the position after the opening delimiter.
func enter(document []byte, delimiter byte, mismatch error) (int, error) {
	i := skipSpace(document, 0)
	if i >= len(document) || document[i] != delimiter {
		return 0, mismatch
	}
	return i + 1, nil
}

func skipSpace(document []byte, i int) int {
	for i < len(document) && (document[i] == ' ' || document[i] == '\n' || document[i] == '\t' || document[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the position after a string.
func skipString(document []byte, i int) (int, bool) {
	if i >= len(document) || document[i] != '"' {
		return 0, false
	}
	for i++; i < len(document); i++ {
		switch document[i] {
		case '"':
			return i + 1, true
		case '\\':
			i++
		}
	}
	return 0, false
}

// skipValue returns the position after a value.
func skipValue(document []byte, i int) (int, bool) {
	if i >= len(document) {
		return 0, false
	}
	switch document[i] {
	case '"':
		return skipString(document, i)
	case '{', '[':
		return skipNested(document, i)
	case ',', ':', '}', ']':
		return 0, false
	}
	for i < len(document) && !isDelimiter(document[i]) {
		i++
	}
	return i, true
}

// skipNested returns the position after an object or array.
func skipNested(document []byte, i int) (int, bool) {
	for depth := 0; i < len(document); i++ {
		switch document[i] {
		case '"':
			end, ok := skipString(document, i)
			if !ok {
				return 0, false
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return 0, false
}

func isDelimiter(c byte) bool {
	switch c {
	case ',', '}', ']', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

// unquote decodes a JSON string.
func unquote(quoted []byte) (string, bool) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return "", false
	}
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return "", false
	}
	return text, true
}
