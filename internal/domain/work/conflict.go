package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/tenancy"
)

// conflictResolution returns how to resolve a conflict with an object that exists in the
// member: the annotation of the manifest if its value is known, else the field of the binding.
// A binding takes over only objects within its reach.
func conflictResolution(manifest *unstructured.Unstructured, bound binding.Object) string {
	const overwrite, abort = workv1alpha2.ResourceConflictResolutionOverwrite, workv1alpha2.ResourceConflictResolutionAbort
	resolution := manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation]
	if resolution != overwrite && resolution != abort {
		resolution = abort
		if bound.BindingSpec().ConflictResolution == policyv1alpha1.ConflictOverwrite {
			resolution = overwrite
		}
	}
	if resolution == overwrite && !binding.PartyOf(bound).MayTakeOver(manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace()) {
		return abort
	}
	return resolution
}

// CanTakeOver reports whether a Work may take over the member object of a manifest that requests
// it. A Work of a ResourceBinding takes over objects of the binding's namespace, unless a
// ClusterOverridePolicy moved the object to another namespace. A Work without a namespaced
// binding may take over any object, because its author has rights for the whole cluster.
func CanTakeOver(work *workv1alpha1.Work, manifest *unstructured.Unstructured) bool {
	party, _, ok := partyOf(work)
	return !ok || party.MayTakeOver(manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace())
}

// CheckDeliverable returns a *tenancy.ForbiddenError unless a Work may deliver a manifest to its
// member. This also covers Works that were stored before bindings and overrides were checked:
// the objects that they delivered are neither deleted nor written again.
func CheckDeliverable(work *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	party, bound, ok := partyOf(work)
	if !ok {
		return nil
	}
	object := types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
	if refusal := party.CheckDelivery(manifest.GroupVersionKind(), object); refusal != nil {
		return fmt.Errorf("%w; nothing is written, and what was delivered stays: delete ResourceBinding %s to remove it", refusal, bound)
	}
	return nil
}

// partyOf returns on whose behalf a Work acts, and its ResourceBinding. ok is false for Works
// without one, which administrators and the components create.
func partyOf(work *workv1alpha1.Work) (party tenancy.Author, bound types.NamespacedName, ok bool) {
	bound, ok = binding.ReferencedBinding(work, true)
	return tenancy.Author{Namespace: bound.Namespace, ClusterWide: work.Annotations[policyv1alpha1.AppliedClusterOverrides] != ""}, bound, ok
}
