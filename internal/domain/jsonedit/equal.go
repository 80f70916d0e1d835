package jsonedit

import (
	"reflect"
	"slices"
)

// Equal reports whether two decoded JSON values are equal. It gives the same result as
// reflect.DeepEqual, but allocates no memory.
func Equal(a, b any) bool {
	switch left := a.(type) {
	case map[string]any:
		right, ok := b.(map[string]any)
		return ok && (left == nil) == (right == nil) && EqualFields(left, right)
	case []any:
		right, ok := b.([]any)
		return ok && (left == nil) == (right == nil) && slices.EqualFunc(left, right, Equal)
	case nil, string, bool, int64, float64:
		return a == b
	default:
		return reflect.DeepEqual(a, b)
	}
}

// EqualFields reports whether two decoded JSON objects have equal fields. It ignores the fields with the
// given names.
func EqualFields(a, b map[string]any, ignored ...string) bool {
	compared := 0
	for field, left := range a {
		if slices.Contains(ignored, field) {
			continue
		}
		if right, found := b[field]; !found || !Equal(left, right) {
			return false
		}
		compared++
	}
	for _, field := range ignored {
		if _, found := b[field]; found {
			compared++
		}
	}
	return compared == len(b)
}
