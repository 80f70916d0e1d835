package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Remedy writes actions to status.remedyActions of the clusters that meet its
// conditions. Controllers outside of the control plane perform the actions.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=remedies,scope=Cluster,categories={karmada-io}
// +kubebuilder:storageversion
type Remedy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the clusters and their actions.
	// +required
	Spec RemedySpec `json:"spec"`
}

// RemedySpec defines the clusters and their actions.
type RemedySpec struct {
	// ClusterAffinity selects the clusters. Unset selects all of them.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// DecisionMatches are the conditions under which a selected cluster gets
	// the actions. One match is enough. Unset means always. An empty list means
	// never.
	// +optional
	DecisionMatches []DecisionMatch `json:"decisionMatches,omitempty"`

	// Actions are the actions to take. A cluster gets the actions of all
	// remedies that match it, without duplicates, sorted. The only defined
	// action, TrafficControl, means that no traffic should be sent to the
	// cluster.
	// +optional
	Actions []RemedyAction `json:"actions,omitempty"`
}

// ClusterAffinity selects clusters by name.
type ClusterAffinity struct {
	// ClusterNames are the names of the clusters. An empty list selects none.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// DecisionMatch is one condition for a cluster. An empty one never matches.
type DecisionMatch struct {
	// ClusterConditionMatch matches a condition in the status of the Cluster.
	// +optional
	ClusterConditionMatch *ClusterConditionRequirement `json:"clusterConditionMatch,omitempty"`
}

// ClusterConditionRequirement compares the status of one condition. A cluster
// without a condition of that type does not match, with either operator.
type ClusterConditionRequirement struct {
	// ConditionType is the type of the condition, such as
	// "ServiceDomainNameResolutionReady".
	// +required
	ConditionType string `json:"conditionType"`

	// Operator is Equal or NotEqual: whether the status must be conditionStatus
	// or a different status.
	// +required
	Operator ClusterConditionOperator `json:"operator"`

	// ConditionStatus is the status to compare with: "True", "False" or
	// "Unknown".
	// +required
	ConditionStatus metav1.ConditionStatus `json:"conditionStatus"`
}

// ClusterConditionOperator compares the status of a condition with a value.
//
// +kubebuilder:validation:Enum=Equal;NotEqual
type ClusterConditionOperator string

const (
	// ClusterConditionEqual matches the same status.
	ClusterConditionEqual ClusterConditionOperator = "Equal"
	// ClusterConditionNotEqual matches any other status.
	ClusterConditionNotEqual ClusterConditionOperator = "NotEqual"
)

// RemedyAction is an action to take about a cluster.
type RemedyAction string

// TrafficControl means that traffic controllers should send no traffic to the
// cluster.
const TrafficControl RemedyAction = "TrafficControl"

// RemedyList is a list of remedies.
//
// +kubebuilder:object:root=true
type RemedyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the remedies.
	Items []Remedy `json:"items"`
}
