package work

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// NamespaceOwner is the Namespace that controls a Work: it goes to every cluster,
// whether a binding of it says so or not. Nil when there is none.
func NamespaceOwner(of *workv1alpha1.Work) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(of)
	if owner == nil || owner.APIVersion != "v1" || owner.Kind != "Namespace" {
		return nil
	}
	return owner
}

// Unbind is the stored Work without its binding: whoever else wants it goes on with
// it, and what is in the member stays. What the binding wrote into the manifest is
// left for that one to render anew.
func Unbind(stored *workv1alpha1.Work) *workv1alpha1.Work {
	result := stored.DeepCopy()
	for _, label := range []string{workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel} {
		delete(result.Labels, label)
	}
	for _, annotation := range []string{
		workv1alpha2.ResourceBindingNamespaceAnnotation, workv1alpha2.ResourceBindingNameAnnotation,
		workv1alpha2.ClusterResourceBindingAnnotation, workv1alpha2.ResourceConflictResolutionAnnotation,
	} {
		delete(result.Annotations, annotation)
	}
	result.Spec.SuspendDispatching, result.Spec.PreserveResourcesOnDeletion = nil, nil
	return result
}
