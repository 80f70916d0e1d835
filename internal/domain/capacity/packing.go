package capacity

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// largestExponent is the largest decimal exponent of a quantity that is compared with other
// numbers. A quantity with a larger exponent exceeds every int64, and a comparison would need time
// and memory in proportion to the exponent.
const largestExponent = 32

// ResourceAmount converts a quantity to the unit in which the resource is counted and rounds up. CPU
// is counted in thousandths of a core, everything else in whole units, so amounts can be compared,
// independent of the notation of the quantities. A quantity that is too large becomes the largest
// number.
func ResourceAmount(name corev1.ResourceName, quantity resource.Quantity) int64 {
	limit := int64(math.MaxInt64)
	if name == corev1.ResourceCPU {
		limit /= 1000
	}
	if exceeds(quantity, limit) {
		return math.MaxInt64
	}
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// exceeds reports whether a quantity is larger than the limit.
func exceeds(quantity resource.Quantity, limit int64) bool {
	if value, ok := quantity.AsInt64(); ok {
		return value > limit
	}
	if quantity.Sign() > 0 && -quantity.AsDec().Scale() > largestExponent {
		return true
	}
	return quantity.CmpInt64(limit) > 0
}

// IsNodeResource reports whether nodes have the resource. Resources that nodes do not have, such as
// limits, do not restrict how many Pods fit onto a node.
func IsNodeResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	prefixed := string(name)
	return strings.HasPrefix(prefixed, corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(prefixed, corev1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(prefixed, "/") && !strings.HasPrefix(prefixed, corev1.DefaultResourceRequestsPrefix)
}

// ResourceAmounts converts the positive quantities of a list to numbers.
func ResourceAmounts(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	amounts := make(map[corev1.ResourceName]int64, len(list))
	for name, quantity := range list {
		if value := ResourceAmount(name, quantity); value > 0 {
			amounts[name] = value
		}
	}
	return amounts
}

// PodRequest returns the amounts of node resources that one replica consumes. A replica consumes at
// least one Pod.
func PodRequest(amounts map[corev1.ResourceName]int64) map[corev1.ResourceName]int64 {
	request := make(map[corev1.ResourceName]int64, len(amounts)+1)
	for name, value := range amounts {
		if IsNodeResource(name) {
			request[name] = value
		}
	}
	request[corev1.ResourcePods] = max(1, request[corev1.ResourcePods])
	return request
}
