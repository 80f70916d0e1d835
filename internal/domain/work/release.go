package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Release removes, in place, all labels and annotations that connect a member object to the control
// plane. Then only the member owns the object. Release reports whether it removed any label or
// annotation. If not, no write is needed.
//
// Release removes the labels and annotations of both policy kinds, because a policy of either kind can
// claim a namespaced object.
func Release(object *unstructured.Unstructured) (changed bool) {
	labels := []string{
		workv1alpha1.ManagedByKarmadaLabel,
		workv1alpha1.WorkPermanentIDLabel,
		workv1alpha2.ResourceBindingPermanentIDLabel,
		workv1alpha2.ClusterResourceBindingPermanentIDLabel,
		policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
	}
	annotations := []string{
		workv1alpha1.WorkNamespaceAnnotation,
		workv1alpha1.WorkNameAnnotation,
		workv1alpha2.ResourceConflictResolutionAnnotation,
		workv1alpha2.ResourceBindingNamespaceAnnotation,
		workv1alpha2.ResourceBindingNameAnnotation,
		workv1alpha2.ClusterResourceBindingAnnotation,
		workv1alpha2.ResourceTemplateUIDAnnotation,
		workv1alpha2.ResourceTemplateGenerationAnnotation,
		workv1alpha2.ManagedAnnotations,
		workv1alpha2.ManagedLabels,
		policyv1alpha1.PropagationPolicyNamespaceAnnotation,
		policyv1alpha1.PropagationPolicyNameAnnotation,
		policyv1alpha1.ClusterPropagationPolicyAnnotation,
	}
	for _, label := range labels {
		changed = removeField(object.Object, "metadata", "labels", label) || changed
	}
	for _, annotation := range annotations {
		changed = removeField(object.Object, "metadata", "annotations", annotation) || changed
	}
	return changed
}
