package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placement defines the clusters that an object is propagated to, and how its
// replicas are divided among them.
type Placement struct {
	// ClusterAffinity restricts the clusters. Unset means all of them. It
	// cannot be combined with clusterAffinities.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// ClusterAffinities are groups of clusters, tried in this order: the
	// scheduler uses the first group in which the object can be placed. It
	// cannot be combined with clusterAffinity.
	// +optional
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`

	// ClusterTolerations are the cluster taints that the object tolerates. The
	// operators Exists and Equal are supported. tolerationSeconds is counted
	// from the time at which a NoExecute taint was added.
	// +optional
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`

	// SpreadConstraints limit the number of clusters, regions, zones or
	// providers that the object is spread over. When a field other than cluster
	// is used, one constraint must be for cluster. Empty means no limit.
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// ReplicaScheduling defines how replicas are divided among the clusters.
	// Unset means that every cluster gets all of them.
	// +optional
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`

	// WorkloadAffinity prefers the same cluster for the workloads of a group,
	// or keeps them in different clusters. It needs the feature gate
	// WorkloadAffinity.
	// +optional
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
}

// ClusterAffinity selects clusters: those that satisfy all given conditions. An
// empty one selects every cluster.
//
// +k8s:openapi-gen=true
type ClusterAffinity struct {
	// LabelSelector selects by the labels of the Cluster objects.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// FieldSelector selects by provider, region and zone of the clusters.
	// +optional
	FieldSelector *FieldSelector `json:"fieldSelector,omitempty"`

	// ClusterNames selects by name. Empty means any name.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// ExcludeClusters are names of clusters that are never selected, even when
	// the other conditions match.
	// +optional
	ExcludeClusters []string `json:"exclude,omitempty"`
}

// FieldSelector selects clusters by fields of their spec.
//
// +k8s:openapi-gen=true
type FieldSelector struct {
	// MatchExpressions must all match. Keys are provider, region and zone,
	// operators In and NotIn. A cluster with several zones is In a list that
	// names one of them, and NotIn a list that names none.
	// +optional
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterAffinityTerm is a named group of clusters.
type ClusterAffinityTerm struct {
	// AffinityName names the group; unique in its list, a valid label key. The
	// group in use is shown in the status of the binding.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`

	// OverflowAffinities are further groups of clusters, used in this order for
	// the replicas that do not fit into the group itself. When the workload is
	// scaled down, their replicas are removed first. Allowed with the division
	// preference Aggregated, or Weighted with dynamicWeight, and only when the
	// group itself restricts the clusters.
	// +optional
	OverflowAffinities []OverflowAffinityTerm `json:"overflowAffinities,omitempty"`
}

// OverflowAffinityTerm is a named group of clusters for the replicas that do
// not fit into the main group.
type OverflowAffinityTerm struct {
	// AffinityName names the group; unique in its list, a valid label key,
	// different from the name of the group that contains it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`
}

// SpreadFieldValue is a property of clusters over which objects are spread.
type SpreadFieldValue string

// Values of SpreadFieldValue.
const (
	// SpreadByFieldCluster spreads over clusters.
	SpreadByFieldCluster SpreadFieldValue = "cluster"
	// SpreadByFieldRegion spreads over the regions of clusters.
	SpreadByFieldRegion SpreadFieldValue = "region"
	// SpreadByFieldZone spreads over the zones of clusters.
	SpreadByFieldZone SpreadFieldValue = "zone"
	// SpreadByFieldProvider spreads over the providers of clusters.
	SpreadByFieldProvider SpreadFieldValue = "provider"
)

// SpreadConstraint limits the number of groups of clusters that an object is
// spread over.
type SpreadConstraint struct {
	// SpreadByField groups the clusters by a field. It cannot be combined with
	// spreadByLabel. Default cluster when neither is given.
	// +optional
	// +kubebuilder:validation:Enum=cluster;region;zone;provider
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`

	// SpreadByLabel groups the clusters by the value of this label. Reserved:
	// the scheduler ignores it.
	// +optional
	SpreadByLabel string `json:"spreadByLabel,omitempty"`

	// MaxGroups is the largest number of groups, at least minGroups. Default 0,
	// which means no limit.
	// +optional
	MaxGroups int `json:"maxGroups,omitempty"`

	// MinGroups is the smallest number of groups. With fewer groups the object
	// is not scheduled. Default 1.
	// +optional
	MinGroups int `json:"minGroups,omitempty"`
}

// ReplicaSchedulingType defines whether each cluster gets all replicas or a
// share of them.
type ReplicaSchedulingType string

// Values of ReplicaSchedulingType.
const (
	// ReplicaSchedulingTypeDuplicated gives every cluster all replicas.
	ReplicaSchedulingTypeDuplicated ReplicaSchedulingType = "Duplicated"
	// ReplicaSchedulingTypeDivided divides the replicas among the clusters.
	ReplicaSchedulingTypeDivided ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference defines how replicas are divided among clusters.
type ReplicaDivisionPreference string

// Values of ReplicaDivisionPreference.
const (
	// ReplicaDivisionPreferenceAggregated uses as few clusters as have the
	// capacity.
	ReplicaDivisionPreferenceAggregated ReplicaDivisionPreference = "Aggregated"
	// ReplicaDivisionPreferenceWeighted divides in proportion to weights.
	ReplicaDivisionPreferenceWeighted ReplicaDivisionPreference = "Weighted"
)

// ReplicaSchedulingStrategy defines how the replicas of a workload are divided
// among clusters.
type ReplicaSchedulingStrategy struct {
	// ReplicaSchedulingType is Duplicated (every cluster gets all replicas) or
	// Divided (the clusters share them). Default Divided.
	// +optional
	// +kubebuilder:validation:Enum=Duplicated;Divided
	// +kubebuilder:default="Divided"
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`

	// ReplicaDivisionPreference defines how replicas are divided when the type
	// is Divided: Aggregated uses as few clusters as have the capacity,
	// Weighted divides in proportion to weights. Default Weighted.
	// +optional
	// +kubebuilder:validation:Enum=Aggregated;Weighted
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`

	// WeightPreference gives the weights when the preference is Weighted. Unset
	// means that all clusters have the same weight.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`
}

// ClusterPreferences gives weights to clusters.
type ClusterPreferences struct {
	// StaticWeightList gives fixed weights. A cluster that several entries
	// select has the largest of their weights. A cluster that no entry selects
	// gets no replicas. When no cluster is selected, all have the same weight.
	// +optional
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`

	// DynamicWeight takes the weights from the state of the clusters, in place
	// of staticWeightList. With AvailableReplicas, the weight of a cluster is
	// the number of replicas that still fit into it.
	// +optional
	// +kubebuilder:validation:Enum=AvailableReplicas
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// StaticClusterWeight gives a weight to the selected clusters.
type StaticClusterWeight struct {
	// TargetCluster selects the clusters.
	// +required
	TargetCluster ClusterAffinity `json:"targetCluster"`

	// Weight is the share of each selected cluster, in relation to the weights
	// of the others. At least 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Weight int64 `json:"weight"`
}

// DynamicWeightFactor is a property of clusters from which their weight is
// computed.
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas makes the weight of a cluster the number of
// replicas that still fit into it.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// WorkloadAffinity prefers the same cluster for the workloads of a group, or
// keeps them in different clusters. Both terms may be given, with different
// label keys.
type WorkloadAffinity struct {
	// Affinity prefers clusters that have a workload of the same group.
	// +optional
	Affinity *WorkloadAffinityTerm `json:"affinity,omitempty"`

	// AntiAffinity avoids clusters that have a workload of the same group.
	// +optional
	AntiAffinity *WorkloadAntiAffinityTerm `json:"antiAffinity,omitempty"`
}

// WorkloadAffinityTerm groups workloads that prefer the same cluster.
type WorkloadAffinityTerm struct {
	// GroupByLabelKey is a label key: the workloads with the same value of this
	// label form a group. A workload without the label belongs to no group.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}

// WorkloadAntiAffinityTerm groups workloads that are kept in different
// clusters.
type WorkloadAntiAffinityTerm struct {
	// GroupByLabelKey is a label key: the workloads with the same value of this
	// label form a group. A workload without the label belongs to no group.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}
