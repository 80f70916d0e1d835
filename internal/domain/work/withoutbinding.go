package work

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// NamespaceOwner returns the Namespace that controls the Work, or nil if there is none. Such a Work is
// propagated to every cluster, with or without a binding.
func NamespaceOwner(work *workv1alpha1.Work) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(work)
	if owner == nil || owner.APIVersion != "v1" || owner.Kind != "Namespace" {
		return nil
	}
	return owner
}

// WithoutBinding returns the stored Work without its binding's data. It is used for a Work that a
// Namespace controls (see NamespaceOwner): instead of deleting the Work with its binding, which would
// delete the member object, Karmada keeps it. The controller that propagates Namespaces then renders
// the manifest again, which removes the binding's changes from the manifest.
func WithoutBinding(stored *workv1alpha1.Work) *workv1alpha1.Work {
	result := stored.DeepCopy()
	for _, label := range []string{workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel} {
		delete(result.Labels, label)
	}
	for _, annotation := range []string{
		workv1alpha2.ResourceBindingNamespaceAnnotation, workv1alpha2.ResourceBindingNameAnnotation,
		workv1alpha2.ClusterResourceBindingAnnotation, workv1alpha2.ResourceConflictResolutionAnnotation,
		workv1alpha1.RenderedFromAnnotation,
	} {
		delete(result.Annotations, annotation)
	}
	result.Spec.SuspendDispatching, result.Spec.PreserveResourcesOnDeletion = nil, nil
	return result
}
