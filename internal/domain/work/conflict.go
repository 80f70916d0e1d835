package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/reach"
)

// conflictResolution is what to do about an object that is already in the member:
// what the manifest says, if it says something known, else what the binding says. A
// binding takes over what is within its reach only.
func conflictResolution(manifest *unstructured.Unstructured, bound binding.Object) string {
	const overwrite, abort = workv1alpha2.ResourceConflictResolutionOverwrite, workv1alpha2.ResourceConflictResolutionAbort
	resolution := manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation]
	if resolution != overwrite && resolution != abort {
		resolution = abort
		if bound.BindingSpec().ConflictResolution == policyv1alpha1.ConflictOverwrite {
			resolution = overwrite
		}
	}
	if resolution == overwrite && !binding.PartyOf(bound).TakesOver(manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace()) {
		return abort
	}
	return resolution
}

// TakesOver reports whether a Work may take over the member object of a manifest that
// demands it. A Work of a ResourceBinding takes over objects of the binding's namespace,
// unless a ClusterOverridePolicy moved the object elsewhere. What was made
// without a namespaced binding is within the reach of its author.
func TakesOver(of *workv1alpha1.Work, manifest *unstructured.Unstructured) bool {
	bound, ok := binding.LedTo(of, true)
	if !ok {
		return true
	}
	party := reach.Party{Namespace: bound.Namespace, Cluster: of.Annotations[policyv1alpha1.AppliedClusterOverrides] != ""}
	return party.TakesOver(manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace())
}
