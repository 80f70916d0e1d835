package reach

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Marked returns the refusal of a Secret that is marked as one of the control plane. join,
// register and agents create the credentials of a cluster with this mark, and before the
// Cluster that refers to them: until then the mark alone says what the Secret holds.
func Marked(object *unstructured.Unstructured) *RefusedError {
	const label, value = clusterv1alpha1.KarmadaSystemLabel, clusterv1alpha1.KarmadaSystemLabelValue
	if !IsSecret(object.GroupVersionKind().GroupKind()) || object.GetLabels()[label] != value {
		return nil
	}
	return refuse("Secret %s/%s is never propagated: the label %s=%s marks it as one of the control plane, such as the credentials of a cluster; remove the label from a Secret that holds none",
		object.GetNamespace(), object.GetName(), label, value)
}
