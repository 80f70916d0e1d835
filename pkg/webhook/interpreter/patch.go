package interpreter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// patchOperation is one operation of a JSON Patch (RFC 6902).
type patchOperation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	// Value is a pointer, because null is a value, but remove has none.
	Value *any `json:"value,omitempty"`
}

// createPatch returns the JSON Patch from one document to another, or nil if both are equal.
func createPatch(original, current []byte) ([]byte, error) {
	from, err := decodeExactly(original)
	if err != nil {
		return nil, fmt.Errorf("decoding the original object: %w", err)
	}
	to, err := decodeExactly(current)
	if err != nil {
		return nil, fmt.Errorf("decoding the current object: %w", err)
	}
	operations := appendChanges(nil, "", from, to)
	if len(operations) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return patch, nil
}

// decodeExactly decodes a document and keeps the text of numbers, because float64 cannot hold every
// integer.
func decodeExactly(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the document")
	}
	return document, nil
}

func appendChanges(operations []patchOperation, path string, from, to any) []patchOperation {
	switch from := from.(type) {
	case map[string]any:
		if to, isObject := to.(map[string]any); isObject {
			return appendObjectChanges(operations, path, from, to)
		}
	case []any:
		if to, isList := to.([]any); isList && len(from) == len(to) {
			for i := range from {
				operations = appendChanges(operations, path+"/"+strconv.Itoa(i), from[i], to[i])
			}
			return operations
		}
	}
	if reflect.DeepEqual(from, to) {
		return operations
	}
	return append(operations, patchOperation{Op: "replace", Path: path, Value: &to})
}

var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")

// appendObjectChanges adds the operations for the fields in alphabetical order, so that the same
// change always has the same patch.
func appendObjectChanges(operations []patchOperation, path string, from, to map[string]any) []patchOperation {
	names := slices.AppendSeq(slices.Collect(maps.Keys(from)), maps.Keys(to))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		field := path + "/" + escapeToken.Replace(name)
		before, existed := from[name]
		after, exists := to[name]
		switch {
		case !exists:
			operations = append(operations, patchOperation{Op: "remove", Path: field})
		case !existed:
			operations = append(operations, patchOperation{Op: "add", Path: field, Value: &after})
		default:
			operations = appendChanges(operations, field, before, after)
		}
	}
	return operations
}
