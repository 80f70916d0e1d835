package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterStatus is how a cluster is.
type ClusterStatus struct {
	// KubernetesVersion is the version of the cluster's API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// APIEnablements are the APIs that the cluster serves, in order of their
	// group and version.
	// +optional
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// Conditions are Ready (the cluster is reachable and healthy) and
	// CompleteAPIEnablements (apiEnablements tells all), and those of other
	// systems.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// NodeSummary counts the nodes.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`

	// ResourceSummary sums up what the nodes offer and what is used.
	// +optional
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`

	// RemedyActions are what other systems should do about problems of the
	// cluster, from the Remedy objects that match it. TrafficControl is the one
	// that Karmada knows.
	// +optional
	RemedyActions []string `json:"remedyActions,omitempty"`
}

// APIEnablement is an API that a cluster serves.
type APIEnablement struct {
	// GroupVersion is the group and version, such as apps/v1.
	// +required
	GroupVersion string `json:"groupVersion"`

	// Resources are the resources, in order of their names and without
	// subresources.
	// +optional
	Resources []APIResource `json:"resources,omitempty"`
}

// APIResource is a resource that a cluster serves.
type APIResource struct {
	// Name is the plural name of the resource, such as deployments.
	// +required
	Name string `json:"name"`

	// Kind is the kind of its objects, such as Deployment.
	// +required
	Kind string `json:"kind"`
}

// NodeSummary counts the nodes of a cluster.
type NodeSummary struct {
	// TotalNum is the number of nodes.
	// +optional
	TotalNum int32 `json:"totalNum,omitempty"`

	// ReadyNum is the number of nodes that are ready.
	// +optional
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// ResourceSummary sums up what the nodes of a cluster offer and what is used.
type ResourceSummary struct {
	// Allocatable is what all nodes offer to pods, for each resource.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Allocating is what pods request that have no node yet.
	// +optional
	Allocating corev1.ResourceList `json:"allocating,omitempty"`

	// Allocated is what pods request that have a node and are not finished.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// AllocatableModelings counts the nodes of each grade of
	// spec.resourceModels.
	// +optional
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
}

// AllocatableModeling counts the nodes of a grade.
type AllocatableModeling struct {
	// Grade is the grade.
	// +required
	Grade uint `json:"grade"`

	// Count is the number of nodes whose free resources are of the grade.
	// +required
	Count int `json:"count"`
}
