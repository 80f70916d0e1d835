package builtin

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// These readers treat null like an absent field, as the API server does, and
// copy nothing. A value of another type than asked for is an error naming the
// path.

func integer(object map[string]any, path ...string) (value int64, found bool, err error) {
	field, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil || !found || field == nil {
		return 0, false, err
	}
	switch number := field.(type) {
	case int64:
		return number, true, nil
	case float64:
		// Both bounds are exact powers of two; the upper one is the first value
		// that does not fit.
		if number == math.Trunc(number) && number >= math.MinInt64 && number < math.MaxInt64 {
			return int64(number), true, nil
		}
	}
	return 0, false, fmt.Errorf("%s is %v, not an integer", strings.Join(path, "."), field)
}

// count is integer with 0 for an absent field.
func count(object map[string]any, path ...string) (int64, error) {
	value, _, err := integer(object, path...)
	return value, err
}

// text returns "" for an absent field.
func text(object map[string]any, path ...string) (string, error) {
	return nested[string](object, path...)
}

// nested returns the field as T, and the zero T when it is absent.
func nested[T any](object map[string]any, path ...string) (T, error) {
	var zero T
	field, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil || !found || field == nil {
		return zero, err
	}
	value, ok := field.(T)
	if !ok {
		return zero, fmt.Errorf("%s is a %T, not a %T", strings.Join(path, "."), field, zero)
	}
	return value, nil
}

// typed converts the field to the API type T; an absent field gives the zero T.
func typed[T any](object map[string]any, path ...string) (T, error) {
	var value T
	field, err := nested[map[string]any](object, path...)
	if err != nil || field == nil {
		return value, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(field, &value); err != nil {
		return value, fmt.Errorf("reading %s: %w", strings.Join(path, "."), err)
	}
	return value, nil
}

// withField returns object with value at path; object itself if it is there.
func withField(object *unstructured.Unstructured, value any, path ...string) (*unstructured.Unstructured, error) {
	changed := edit{object: object}
	if err := changed.set(value, path...); err != nil {
		return nil, err
	}
	return changed.object, nil
}

// int32Of cuts value to the nearest 32-bit integer.
func int32Of(value int64) int32 {
	return int32(min(max(value, math.MinInt32), math.MaxInt32))
}
