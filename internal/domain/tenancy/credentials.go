package tenancy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// CheckSystemLabel returns an error for a Secret with the control plane's system label. The commands
// join and register, and agents, create a cluster's credentials with this label before they create the
// Cluster that refers to the credentials. Until the Cluster exists, only the label shows that the
// Secret contains credentials.
func CheckSystemLabel(object *unstructured.Unstructured) *ForbiddenError {
	const label, value = clusterv1alpha1.KarmadaSystemLabel, clusterv1alpha1.KarmadaSystemLabelValue
	if !IsSecret(object.GroupVersionKind().GroupKind()) || object.GetLabels()[label] != value {
		return nil
	}
	return newForbiddenError("Secret %s/%s is never propagated: the label %s=%s marks it as one of the control plane, such as the credentials of a cluster; remove the label from a Secret that holds none",
		object.GetNamespace(), object.GetName(), label, value)
}
