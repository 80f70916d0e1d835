package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Remedy publishes actions in status.remedyActions of the clusters that meet
// certain conditions. Controllers outside of the control plane act on them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=remedies,scope=Cluster,categories={karmada-io}
// +kubebuilder:storageversion
type Remedy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which clusters need which actions.
	// +required
	Spec RemedySpec `json:"spec"`
}

// RemedySpec says which clusters need which actions.
type RemedySpec struct {
	// ClusterAffinity selects the clusters to watch over. Unset selects all of
	// them.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// DecisionMatches are the conditions under which a selected cluster needs
	// the actions; one that matches is enough. Unset means always, an empty list
	// never.
	// +optional
	DecisionMatches []DecisionMatch `json:"decisionMatches,omitempty"`

	// Actions are what to do. A cluster gets the actions of all remedies that
	// match it, each once, sorted. TrafficControl, the only action known, asks
	// to keep traffic away from the cluster.
	// +optional
	Actions []RemedyAction `json:"actions,omitempty"`
}

// ClusterAffinity selects clusters by name.
type ClusterAffinity struct {
	// ClusterNames are the names of the clusters. An empty list selects none.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// DecisionMatch is one way in which a cluster can match. An empty one never
// matches.
type DecisionMatch struct {
	// ClusterConditionMatch looks at a condition in the status of the Cluster.
	// +optional
	ClusterConditionMatch *ClusterConditionRequirement `json:"clusterConditionMatch,omitempty"`
}

// ClusterConditionRequirement compares the status of one condition. A cluster
// without a condition of that type does not match, whatever the operator.
type ClusterConditionRequirement struct {
	// ConditionType is the type of the condition, such as
	// "ServiceDomainNameResolutionReady".
	// +required
	ConditionType string `json:"conditionType"`

	// Operator says whether the status must be Equal or NotEqual to
	// conditionStatus.
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

// RemedyAction is something to do about a cluster.
type RemedyAction string

// TrafficControl asks traffic controllers to route around the cluster.
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
