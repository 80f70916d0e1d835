package catalog

import (
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// Scope describes one of the two kinds of policies.
type Scope struct {
	// ControllerName is the name of the controller in logs and metrics. Plural is the plural of the
	// kind.
	ControllerName, Plural string
	IsCluster              bool
	// Finalizer is the finalizer of the policies. It is removed from a deleted policy when the
	// policy claims no template any more.
	Finalizer string
	// NewPolicy returns an empty policy.
	NewPolicy func() policy.Object
}

// Scopes returns both kinds of policies, PropagationPolicies first.
func Scopes() []Scope {
	return []Scope{
		{
			ControllerName: "propagation-policy-detector", Plural: "PropagationPolicies",
			Finalizer: policyv1alpha1.PropagationPolicyControllerFinalizer,
			NewPolicy: func() policy.Object { return &policyv1alpha1.PropagationPolicy{} },
		},
		{
			ControllerName: "cluster-propagation-policy-detector", Plural: "ClusterPropagationPolicies", IsCluster: true,
			Finalizer: policyv1alpha1.ClusterPropagationPolicyControllerFinalizer,
			NewPolicy: func() policy.Object { return &policyv1alpha1.ClusterPropagationPolicy{} },
		},
	}
}

// NewPolicyFor returns an empty policy of the kind to which a claim belongs.
func NewPolicyFor(claim policy.Claim) policy.Object {
	if claim.IsCluster() {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}
