package capacity

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ResourceColumns are the names of resources in the order in which a ResourceVector holds their amounts.
type ResourceColumns []corev1.ResourceName

// ResourceVector holds one amount for each of its ResourceColumns.
type ResourceVector []int64

// ResourceColumnsOf returns the names of all requested resources, sorted.
func ResourceColumnsOf(requests ...map[corev1.ResourceName]int64) ResourceColumns {
	names := map[corev1.ResourceName]struct{}{}
	for _, request := range requests {
		for name := range request {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Vector returns the amounts of the columns. An absent resource has the amount 0.
func (c ResourceColumns) Vector(amounts map[corev1.ResourceName]int64) ResourceVector {
	vector := make(ResourceVector, len(c))
	for i, name := range c {
		vector[i] = amounts[name]
	}
	return vector
}

// Fits returns how many times the request fits. Both vectors must have the same columns. The result
// is math.MaxInt64 if nothing is requested.
func (v ResourceVector) Fits(request ResourceVector) int64 {
	count := int64(math.MaxInt64)
	for i, requested := range request {
		if requested > 0 {
			count = min(count, max(0, v[i])/requested)
		}
	}
	return count
}

// reserve subtracts a request several times.
func (v ResourceVector) reserve(request ResourceVector, times int64) {
	for i, requested := range request {
		v[i] = SaturatingSubtract(v[i], SaturatingMultiply(requested, times))
	}
}
