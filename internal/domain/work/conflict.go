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

// conflictResolution returns how to resolve a conflict with an object that already exists in the
// member: the manifest's annotation if its value is valid, otherwise the binding's field. A binding
// takes over only objects that its author may take over.
func conflictResolution(manifest *unstructured.Unstructured, bound binding.Object) string {
	const overwrite, abort = workv1alpha2.ResourceConflictResolutionOverwrite, workv1alpha2.ResourceConflictResolutionAbort
	resolution := manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation]
	if resolution != overwrite && resolution != abort {
		resolution = abort
		if bound.BindingSpec().ConflictResolution == policyv1alpha1.ConflictOverwrite {
			resolution = overwrite
		}
	}
	if resolution == overwrite && !binding.AuthorOf(bound).MayTakeOver(manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace()) {
		return abort
	}
	return resolution
}

// CanTakeOver reports whether the Work may take over a member object if the manifest requests this. The
// Work of a ResourceBinding may take over objects in the binding's namespace, unless a
// ClusterOverridePolicy moved the object to another namespace. A Work without a ResourceBinding may
// take over any object, because its author has permissions for the whole cluster.
func CanTakeOver(work *workv1alpha1.Work, manifest *unstructured.Unstructured) bool {
	author, _, ok := authorOf(work)
	return !ok || author.MayTakeOver(manifest.GroupVersionKind().GroupKind(), manifest.GetNamespace())
}

// ValidateDelivery returns a *tenancy.ForbiddenError unless the Work may deliver the given manifest to
// its member. This also applies to Works that were stored before Karmada validated bindings and
// overrides. The objects that such Works delivered are neither deleted nor updated.
func ValidateDelivery(work *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	author, bound, ok := authorOf(work)
	if !ok {
		return nil
	}
	object := types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
	if refusal := author.CheckDelivery(manifest.GroupVersionKind(), object); refusal != nil {
		return fmt.Errorf("%w; nothing is written, and what was delivered stays: delete ResourceBinding %s to remove it", refusal, bound)
	}
	return nil
}

// authorOf returns the author on whose behalf the Work acts, and the Work's ResourceBinding. ok is
// false for a Work without a ResourceBinding, which only administrators and Karmada's components can
// create.
func authorOf(work *workv1alpha1.Work) (author tenancy.Author, bound types.NamespacedName, ok bool) {
	bound, ok = binding.ReferencedBinding(work, true)
	return tenancy.Author{Namespace: bound.Namespace, ClusterWide: work.Annotations[policyv1alpha1.AppliedClusterOverrides] != ""}, bound, ok
}
