package binding

import (
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/tenancy"
)

// AuthorOf returns the author on whose behalf a binding acts. Only administrators of the control
// plane create ClusterResourceBindings and ClusterPropagationPolicies. A ResourceBinding that no
// ClusterPropagationPolicy claims acts for the users of its namespace.
func AuthorOf(obj Object) tenancy.Author {
	return tenancy.Author{
		Namespace:   obj.GetNamespace(),
		ClusterWide: !IsNamespaced(obj) || obj.GetLabels()[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "",
	}
}
