package dependency

import (
	"slices"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// RecordSuspension records on the attached binding in which clusters dispatching of the dependent is
// suspended. Dispatching of the attached binding is then suspended there too, so that the dependent's
// copy keeps the dependencies with which it runs.
func RecordSuspension(attached binding.Object, dependent *workv1alpha2.ResourceBinding) {
	binding.RecordSuspendedDependent(attached, keyOf(dependent), func(cluster string) bool { return isSuspendedIn(dependent, cluster) })
}

// retainDependent reduces the snapshot of a dependent that no longer refers to the object to the
// clusters in which the dependent has an outdated copy. If there are no such clusters, it changes
// nothing and returns false.
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

// hasOutdatedCopy reports whether the dependent's copy in the cluster may be older than the template,
// and may therefore refer to objects to which the template no longer refers. This is possible if
// dispatching to the cluster is suspended, or if the copy stays only until its eviction ends.
func hasOutdatedCopy(dependent *workv1alpha2.ResourceBinding, cluster string) bool {
	if isSuspendedIn(dependent, cluster) {
		return true
	}
	return dependent.DeletionTimestamp == nil && !hasCluster(dependent.Spec.Clusters, cluster) &&
		slices.ContainsFunc(dependent.Spec.GracefulEvictionTasks,
			func(task workv1alpha2.GracefulEvictionTask) bool { return task.FromCluster == cluster })
}

// isSuspendedIn reports whether dispatching of the dependent to the cluster is suspended. A deleted
// dependent's suspension counts until its Works are deleted, because until then its copies may stay in
// suspended clusters.
func isSuspendedIn(dependent *workv1alpha2.ResourceBinding, cluster string) bool {
	hasWorks := dependent.DeletionTimestamp == nil || slices.Contains(dependent.Finalizers, workv1alpha2.BindingControllerFinalizer)
	return hasWorks && binding.IsDispatchSuspended(dependent, cluster)
}
