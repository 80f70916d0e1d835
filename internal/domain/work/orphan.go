package work

import (
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// OrphanWorks returns the binding's Works that must be deleted: the Works in clusters that are not
// expected, and the Works with an outdated name. names maps a cluster to the current name of its Work,
// which changes if an override renames the object. Works outside any execution namespace are ignored.
func OrphanWorks(works []*workv1alpha1.Work, expected sets.Set[string], names map[string]string) []*workv1alpha1.Work {
	var orphans []*workv1alpha1.Work
	for _, work := range works {
		cluster, ok := ClusterOf(work.Namespace)
		if !ok {
			continue
		}
		name, known := names[cluster]
		if !expected.Has(cluster) || known && name != work.Name {
			orphans = append(orphans, work)
		}
	}
	return orphans
}

// HasWorkIn reports whether any of the Works, including Works in deletion, belongs to one of the given
// clusters.
func HasWorkIn(works []*workv1alpha1.Work, clusters sets.Set[string]) bool {
	for _, work := range works {
		if cluster, ok := ClusterOf(work.Namespace); ok && clusters.Has(cluster) {
			return true
		}
	}
	return false
}
