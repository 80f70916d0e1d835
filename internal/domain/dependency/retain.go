package dependency

import (
	"slices"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// RecordSuspension records on an attached binding in which clusters the dispatching of a dependent
// is suspended. The dispatching of the attached binding is then suspended there too, so that the
// copy of the dependent keeps the dependencies with which it runs.
func RecordSuspension(attached binding.Object, dependent *workv1alpha2.ResourceBinding) {
	binding.RecordSuspendedDependent(attached, keyOf(dependent), func(cluster string) bool { return isSuspendedIn(dependent, cluster) })
}

// retainDependent reduces the snapshot of a dependent that no longer refers to the object to the
// clusters in which the dependent has an outdated copy. It reports false, and changes nothing, if
// there are no such clusters.
func retainDependent(attached binding.Object, dependent *workv1alpha2.ResourceBinding) bool {
	spec := attached.BindingSpec()
	i := indexOf(spec, keyOf(dependent))
	if i < 0 {
		return false
	}
	retained := *spec.RequiredBy[i].DeepCopy()
	retained.Clusters = slices.DeleteFunc(retained.Clusters, func(target workv1alpha2.TargetCluster) bool {
		return !hasOutdatedCopy(dependent, target.Name)
	})
	if len(retained.Clusters) == 0 {
		return false
	}
	putSnapshot(spec, retained)
	RecordSuspension(attached, dependent)
	return true
}

// hasOutdatedCopy reports whether the copy of a dependent in a cluster may be older than its
// template, and may therefore refer to objects to which the template no longer refers: the
// dispatching to the cluster is suspended, or the copy stays only until its eviction ends.
func hasOutdatedCopy(dependent *workv1alpha2.ResourceBinding, cluster string) bool {
	if isSuspendedIn(dependent, cluster) {
		return true
	}
	return dependent.DeletionTimestamp == nil && !hasCluster(dependent.Spec.Clusters, cluster) &&
		slices.ContainsFunc(dependent.Spec.GracefulEvictionTasks,
			func(task workv1alpha2.GracefulEvictionTask) bool { return task.FromCluster == cluster })
}

// isSuspendedIn reports whether the dispatching of a dependent to a cluster is suspended. A
// suspension of a deleted dependent counts until its Works are deleted, because until then its
// copies may stay in suspended clusters.
func isSuspendedIn(dependent *workv1alpha2.ResourceBinding, cluster string) bool {
	hasWorks := dependent.DeletionTimestamp == nil || slices.Contains(dependent.Finalizers, workv1alpha2.BindingControllerFinalizer)
	return hasWorks && binding.IsDispatchSuspended(dependent, cluster)
}
