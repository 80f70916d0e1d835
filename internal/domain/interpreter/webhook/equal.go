package webhook

import (
	"math"
	"slices"
)

// equalJSON reports whether two JSON values are equal as defined by RFC 6902, where numbers are equal if
// they are numerically equal.
func equalJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		other, isObject := b.(map[string]any)
		if !isObject || len(a) != len(other) {
			return false
		}
		for key, value := range a {
			if match, found := other[key]; !found || !equalJSON(value, match) {
				return false
			}
		}
		return true
	case []any:
		other, isList := b.([]any)
		return isList && slices.EqualFunc(a, other, equalJSON)
	case int64:
		if other, isFloat := b.(float64); isFloat {
			return equalNumbers(a, other)
		}
	case float64:
		if other, isInteger := b.(int64); isInteger {
			return equalNumbers(other, a)
		}
	}
	return a == b
}

// equalNumbers compares the numbers without converting the integer to float64, which would lose precision.
func equalNumbers(integer int64, float float64) bool {
	return float == math.Trunc(float) && float >= math.MinInt64 && float < math.MaxInt64 && int64(float) == integer
}
