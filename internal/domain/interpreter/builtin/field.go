package builtin

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The functions in this file do not copy values. They treat null as an absent field, as the API
// server does. For a value of the wrong type they return an error that contains the path.

func integer(object map[string]any, path ...string) (value int64, found bool, err error) {
	field, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil || !found || field == nil {
		return 0, false, err
	}
	switch number := field.(type) {
	case int64:
		return number, true, nil
	case float64:
		// Both limits are exact powers of two. The upper limit is the smallest value that is out of
		// range.
		if number == math.Trunc(number) && number >= math.MinInt64 && number < math.MaxInt64 {
			return int64(number), true, nil
		}
	}
	return 0, false, fmt.Errorf("%s is %v, not an integer", strings.Join(path, "."), field)
}

// integerOrZero returns the integer at path, or 0 if the field is missing.
func integerOrZero(object map[string]any, path ...string) (int64, error) {
	value, _, err := integer(object, path...)
	return value, err
}

// text returns the string at path, or "" if the field is missing.
func text(object map[string]any, path ...string) (string, error) {
	return nested[string](object, path...)
}

// nested returns the field at path as T, or the zero T if the field is missing.
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

// typed converts the field at path to the API type T, or returns the zero T if the field is missing.
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

// withField returns a copy of the object with the value at path, or the object itself if the field already
// has this value.
func withField(object *unstructured.Unstructured, value any, path ...string) (*unstructured.Unstructured, error) {
	changed := copyOnWrite{object: object}
	if err := changed.set(value, path...); err != nil {
		return nil, err
	}
	return changed.object, nil
}

// saturateInt32 converts value to the nearest 32-bit integer.
func saturateInt32(value int64) int32 {
	return int32(min(max(value, math.MinInt32), math.MaxInt32))
}
