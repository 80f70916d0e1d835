package cluster

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// UnboundedMax is the maximum value of the highest grade.
const UnboundedMax int64 = math.MaxInt64

const gibibyte int64 = 1 << 30

// defaultGradeBounds returns the limits between the default grades, in cores and GiB. Grade i is from
// bound i (inclusive) to bound i+1 (exclusive).
func defaultGradeBounds() []struct{ cores, gibibytes int64 } {
	return []struct{ cores, gibibytes int64 }{
		{0, 0}, {1, 4}, {2, 16}, {4, 32}, {8, 64}, {16, 128}, {32, 256}, {64, 512}, {128, 1024},
	}
}

// DefaultModels returns the nine node grades for a Cluster whose owner defines none. The lowest grade
// is [0,1) cores and [0,4) GiB of memory. The highest grade is 128 cores and 1 TiB or more. The caller
// may change the result.
func DefaultModels() []clusterv1alpha1.ResourceModel {
	bounds := defaultGradeBounds()
	models := make([]clusterv1alpha1.ResourceModel, len(bounds))
	for i, lower := range bounds {
		cores, memory := UnboundedMax, UnboundedMax
		if i+1 < len(bounds) {
			cores, memory = bounds[i+1].cores, bounds[i+1].gibibytes*gibibyte
		}
		models[i] = clusterv1alpha1.ResourceModel{
			Grade: uint(i),
			Ranges: []clusterv1alpha1.ResourceModelRange{
				newModelRange(corev1.ResourceCPU, lower.cores, cores, resource.DecimalSI),
				newModelRange(corev1.ResourceMemory, lower.gibibytes*gibibyte, memory, resource.BinarySI),
			},
		}
	}
	return models
}

func newModelRange(name corev1.ResourceName, lower, upper int64, format resource.Format) clusterv1alpha1.ResourceModelRange {
	return clusterv1alpha1.ResourceModelRange{
		Name: name,
		Min:  *resource.NewQuantity(lower, format),
		Max:  *resource.NewQuantity(upper, format),
	}
}

// StandardizeModels returns the models sorted by grade. The result's lowest grade begins at 0 and its
// highest grade ends at UnboundedMax, so that every node has a grade. StandardizeModels does not change
// its argument.
func StandardizeModels(models []clusterv1alpha1.ResourceModel) []clusterv1alpha1.ResourceModel {
	if len(models) == 0 {
		return models
	}
	standard := make([]clusterv1alpha1.ResourceModel, len(models))
	for i := range models {
		models[i].DeepCopyInto(&standard[i])
	}
	slices.SortStableFunc(standard, func(a, b clusterv1alpha1.ResourceModel) int {
		return cmp.Compare(a.Grade, b.Grade)
	})
	lowest, highest := standard[0].Ranges, standard[len(standard)-1].Ranges
	for i := range lowest {
		if !lowest[i].Min.IsZero() {
			lowest[i].Min = *resource.NewQuantity(0, lowest[i].Min.Format)
		}
	}
	for i := range highest {
		if !isUnbounded(highest[i].Max) {
			highest[i].Max = *resource.NewQuantity(UnboundedMax, highest[i].Max.Format)
		}
	}
	return standard
}

func isUnbounded(q resource.Quantity) bool {
	return q.CmpInt64(UnboundedMax) == 0
}
