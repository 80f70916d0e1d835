package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
	party, _, ok := partyOf(of)
	return !ok || party.TakesOver(manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace())
}

// Deliverable returns a *reach.RefusedError unless a Work may bring a manifest to its
// member. It holds for Works that were stored before bindings and overrides were judged:
// what they delivered is neither deleted nor made again.
func Deliverable(of *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	party, bound, ok := partyOf(of)
	if !ok {
		return nil
	}
	object := types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
	if refusal := party.Delivers(manifest.GroupVersionKind(), object); refusal != nil {
		return fmt.Errorf("%w; nothing is written, and what was delivered stays: delete ResourceBinding %s to remove it", refusal, bound)
	}
	return nil
}

// partyOf returns for whom a Work acts, and its ResourceBinding. It is false for Works
// without one, which administrators and the components make.
func partyOf(of *workv1alpha1.Work) (party reach.Party, bound types.NamespacedName, ok bool) {
	bound, ok = binding.LedTo(of, true)
	return reach.Party{Namespace: bound.Namespace, Cluster: of.Annotations[policyv1alpha1.AppliedClusterOverrides] != ""}, bound, ok
}
