// Package v1alpha1 holds the policy.karmada.io/v1alpha1 wire types: which objects are propagated
// to which member clusters (PropagationPolicy), what differs there (OverridePolicy), how much
// may be used over all clusters (FederatedResourceQuota) and when clusters are tainted
// (ClusterTaintPolicy).
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-model-package=io.karmada.policy.v1alpha1
// +groupName=policy.karmada.io
package v1alpha1
