package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind and resource name of the taint policy.
const (
	ResourceKindClusterTaintPolicy   = "ClusterTaintPolicy"
	ResourcePluralClusterTaintPolicy = "clustertaintpolicies"
)

// ClusterTaintPolicy adds taints to clusters and removes taints, depending on
// the conditions of the clusters. Deleting or changing a policy removes no
// taint. It needs the feature gate Failover.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope="Cluster"
type ClusterTaintPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the taints, and when they are added and removed.
	// +required
	Spec ClusterTaintPolicySpec `json:"spec"`
}

// ClusterTaintPolicyList is a list of ClusterTaintPolicy.
//
// +kubebuilder:object:root=true
type ClusterTaintPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []ClusterTaintPolicy `json:"items"`
}

// ClusterTaintPolicySpec defines the taints, and when they are added and
// removed.
type ClusterTaintPolicySpec struct {
	// TargetClusters selects the clusters. Unset means all of them.
	// +optional
	TargetClusters *ClusterAffinity `json:"targetClusters,omitempty"`

	// AddOnConditions are the conditions of a cluster under which the taints are
	// added: all of them must match. Empty means that nothing is added.
	// +optional
	AddOnConditions []MatchCondition `json:"addOnConditions,omitempty"`

	// RemoveOnConditions are the conditions of a cluster under which the taints
	// are removed: all of them must match. Empty means that nothing is removed.
	// +optional
	RemoveOnConditions []MatchCondition `json:"removeOnConditions,omitempty"`

	// Taints are the taints to add or remove, unique by key and effect.
	// +required
	// +kubebuilder:validation:MinItems=1
	Taints []Taint `json:"taints"`
}

// MatchCondition matches the status of one condition of a cluster. A cluster
// without the condition never matches.
type MatchCondition struct {
	// ConditionType is the type of the condition, such as Ready.
	// +required
	ConditionType string `json:"conditionType"`

	// Operator is In (the status is one of the values) or NotIn (it is none of
	// them).
	// +required
	Operator MatchConditionOperator `json:"operator"`

	// StatusValues are the values to compare the status with: True, False,
	// Unknown.
	// +required
	StatusValues []metav1.ConditionStatus `json:"statusValues"`
}

// MatchConditionOperator compares a status with values.
type MatchConditionOperator string

// Values of MatchConditionOperator.
const (
	// MatchConditionOpIn matches when the status is one of the values.
	MatchConditionOpIn MatchConditionOperator = "In"
	// MatchConditionOpNotIn matches when the status is none of the values.
	MatchConditionOpNotIn MatchConditionOperator = "NotIn"
)

// Taint is a taint of a cluster.
type Taint struct {
	// Key is the key of the taint.
	// +required
	Key string `json:"key"`

	// Effect is NoSchedule (no new objects are scheduled to the cluster) or
	// NoExecute (objects that do not tolerate the taint are also evicted from
	// the cluster). NoExecute must be allowed by a flag of the webhook.
	// +required
	Effect corev1.TaintEffect `json:"effect"`

	// Value is the value of the taint. A taint that the cluster already has
	// keeps its value.
	// +optional
	Value string `json:"value,omitempty"`
}
