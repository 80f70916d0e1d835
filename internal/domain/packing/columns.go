package packing

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Columns are the names of resources in the order in which a Vector holds their amounts.
type Columns []corev1.ResourceName

// Vector holds one amount for each of its Columns.
type Vector []int64

// ColumnsOf returns the names of all requested resources, sorted.
func ColumnsOf(requests ...map[corev1.ResourceName]int64) Columns {
	names := map[corev1.ResourceName]struct{}{}
	for _, request := range requests {
		for name := range request {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Vector returns the amounts of the columns. An absent resource has the amount 0.
func (c Columns) Vector(amounts map[corev1.ResourceName]int64) Vector {
	vector := make(Vector, len(c))
	for i, name := range c {
		vector[i] = amounts[name]
	}
	return vector
}

// Fits returns how many times the request fits. Both vectors must have the same columns. The result
// is math.MaxInt64 if nothing is requested.
func (v Vector) Fits(request Vector) int64 {
	count := int64(math.MaxInt64)
	for i, requested := range request {
		if requested > 0 {
			count = min(count, max(0, v[i])/requested)
		}
	}
	return count
}

// reserve subtracts a request several times.
func (v Vector) reserve(request Vector, times int64) {
	for i, requested := range request {
		v[i] = Subtract(v[i], Multiply(requested, times))
	}
}
