package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind and resource name of the quota.
const (
	ResourceKindFederatedResourceQuota   = "FederatedResourceQuota"
	ResourcePluralFederatedResourceQuota = "federatedresourcequotas"
)

// FederatedResourceQuota limits what a namespace may use over all clusters, and
// gives clusters a ResourceQuota of their own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.status.overall`,name="OVERALL",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.overallUsed`,name="OVERALL_USED",type=string
type FederatedResourceQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired quota.
	// +required
	Spec FederatedResourceQuotaSpec `json:"spec"`

	// Status is what is used.
	// +optional
	Status FederatedResourceQuotaStatus `json:"status,omitempty"`
}

// FederatedResourceQuotaList is a list of FederatedResourceQuota.
//
// +kubebuilder:object:root=true
type FederatedResourceQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the quotas.
	Items []FederatedResourceQuota `json:"items"`
}

// FederatedResourceQuotaSpec is the desired quota.
type FederatedResourceQuotaSpec struct {
	// Overall is the limit over all clusters, for each resource. It is enforced
	// when the feature gate FederatedQuotaEnforcement is on.
	// +required
	Overall corev1.ResourceList `json:"overall"`

	// StaticAssignments are fixed limits of single clusters. Each cluster gets a
	// ResourceQuota with the name and namespace of this object. Their sum must
	// not exceed overall.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(a, size(a.clusterName) >= 1 && size(a.clusterName) <= 48)",message="the name of a cluster has 1 to 48 characters"
	StaticAssignments []StaticClusterAssignment `json:"staticAssignments,omitempty"`
}

// StaticClusterAssignment is the fixed limit of a cluster.
type StaticClusterAssignment struct {
	// ClusterName is the name of the cluster; it need not have joined yet.
	// +required
	ClusterName string `json:"clusterName"`

	// Hard is the limit of the cluster, for each resource. Every resource must
	// be limited in overall too.
	// +required
	Hard corev1.ResourceList `json:"hard"`
}

// FederatedResourceQuotaStatus is what is limited and used.
type FederatedResourceQuotaStatus struct {
	// Overall is the limit over all clusters that is in force.
	// +optional
	Overall corev1.ResourceList `json:"overall,omitempty"`

	// OverallUsed is what is used over all clusters, for each resource.
	// +optional
	OverallUsed corev1.ResourceList `json:"overallUsed,omitempty"`

	// AggregatedStatus is limit and use in the clusters with a static
	// assignment, in order of their names.
	// +optional
	AggregatedStatus []ClusterQuotaStatus `json:"aggregatedStatus,omitempty"`
}

// ClusterQuotaStatus is what is limited and used in a cluster.
type ClusterQuotaStatus struct {
	// ClusterName is the name of the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// The status of the ResourceQuota in the cluster.
	corev1.ResourceQuotaStatus `json:",inline"`
}
