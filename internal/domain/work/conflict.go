package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// conflictResolution is what to do about an object that is already in the member:
// what the manifest says, if it says something known, else what the binding says.
func conflictResolution(manifest *unstructured.Unstructured, binding policyv1alpha1.ConflictResolution) string {
	switch wish := manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation]; wish {
	case workv1alpha2.ResourceConflictResolutionOverwrite, workv1alpha2.ResourceConflictResolutionAbort:
		return wish
	}
	if binding == policyv1alpha1.ConflictOverwrite {
		return workv1alpha2.ResourceConflictResolutionOverwrite
	}
	return workv1alpha2.ResourceConflictResolutionAbort
}
