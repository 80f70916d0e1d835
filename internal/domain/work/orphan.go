package work

import (
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// Orphans are those Works of a binding that have no reason to be: in clusters that
// are not expected to have one, and, where names tells how the Work of a cluster
// is called now, Works of other names. A Work gets another name when an override
// renames the object. Works outside any execution namespace are not judged.
func Orphans(works []*workv1alpha1.Work, expected sets.Set[string], names map[string]string) []*workv1alpha1.Work {
	var orphans []*workv1alpha1.Work
	for _, each := range works {
		cluster, ok := ClusterOf(each.Namespace)
		if !ok {
			continue
		}
		name, known := names[cluster]
		if !expected.Has(cluster) || known && name != each.Name {
			orphans = append(orphans, each)
		}
	}
	return orphans
}

// Inside tells whether any of the Works, in deletion or not, is in one of the
// clusters.
func Inside(works []*workv1alpha1.Work, clusters sets.Set[string]) bool {
	for _, each := range works {
		if cluster, ok := ClusterOf(each.Namespace); ok && clusters.Has(cluster) {
			return true
		}
	}
	return false
}
