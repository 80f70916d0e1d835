package binding

import (
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/reach"
)

// PartyOf returns for whom a binding acts. Only administrators of the control plane make
// ClusterResourceBindings and ClusterPropagationPolicies; a ResourceBinding that no
// ClusterPropagationPolicy claims acts for authors in its namespace.
func PartyOf(obj Object) reach.Party {
	return reach.Party{
		Namespace: obj.GetNamespace(),
		Cluster:   !Namespaced(obj) || obj.GetLabels()[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "",
	}
}
