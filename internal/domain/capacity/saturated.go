package capacity

import "math"

// ClampToInt32 limits a number to the range from 0 to the largest int32.
func ClampToInt32(n int64) int32 { return int32(max(0, min(n, math.MaxInt32))) } // bounded by the expression

// SaturatingSubtract returns a - b, limited to the range of int64.
func SaturatingSubtract(a, b int64) int64 {
	if b > 0 && a < math.MinInt64+b {
		return math.MinInt64
	}
	if b < 0 && a > math.MaxInt64+b {
		return math.MaxInt64
	}
	return a - b
}

// SaturatingAdd adds two non-negative numbers and returns math.MaxInt64 on overflow.
func SaturatingAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// SaturatingMultiply multiplies two non-negative numbers and returns math.MaxInt64 on overflow.
func SaturatingMultiply(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// DivideRoundingUp returns a divided by b, rounded up. a must not be negative, and b must be
// positive.
func DivideRoundingUp(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}
