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

// FederatedResourceQuota limits the resources that a namespace may use over all
// clusters. It can also create a ResourceQuota in single clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=frq
// +kubebuilder:printcolumn:JSONPath=`.status.overall`,name="OVERALL",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.overallUsed`,name="OVERALL_USED",type=string
type FederatedResourceQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired quota.
	// +required
	Spec FederatedResourceQuotaSpec `json:"spec"`

	// Status reports the limits and the usage.
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
	// ClusterName is the name of the cluster; the cluster may join later.
	// +required
	ClusterName string `json:"clusterName"`

	// Hard is the limit of the cluster, for each resource. Every resource must
	// be limited in overall too.
	// +required
	Hard corev1.ResourceList `json:"hard"`
}

// FederatedResourceQuotaStatus reports the limits and the usage.
type FederatedResourceQuotaStatus struct {
	// Overall is the limit over all clusters that is in force.
	// +optional
	Overall corev1.ResourceList `json:"overall,omitempty"`

	// OverallUsed is the usage over all clusters, for each resource.
	// +optional
	OverallUsed corev1.ResourceList `json:"overallUsed,omitempty"`

	// AggregatedStatus holds the limits and the usage of the clusters with a
	// static assignment, sorted by cluster name.
	// +optional
	AggregatedStatus []ClusterQuotaStatus `json:"aggregatedStatus,omitempty"`
}

// ClusterQuotaStatus reports the limits and the usage of one cluster.
type ClusterQuotaStatus struct {
	// ClusterName is the name of the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// The status of the ResourceQuota in the cluster.
	corev1.ResourceQuotaStatus `json:",inline"`
}
