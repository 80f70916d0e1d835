package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterStatus is the observed state of a cluster.
type ClusterStatus struct {
	// KubernetesVersion is the version of the cluster's API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// APIEnablements are the APIs that the cluster serves, sorted by group and
	// version.
	// +optional
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// Conditions are Ready (the cluster is reachable and healthy) and
	// CompleteAPIEnablements (apiEnablements is complete), and conditions that
	// other systems set.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// NodeSummary counts the nodes.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`

	// ResourceSummary is the sum of the allocatable and of the used resources
	// of the nodes.
	// +optional
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`

	// RemedyActions are the actions that other systems should take about
	// problems of the cluster. They come from the Remedy objects that match it.
	// Karmada defines TrafficControl.
	// +optional
	RemedyActions []string `json:"remedyActions,omitempty"`
}

// APIEnablement is an API that a cluster serves.
type APIEnablement struct {
	// GroupVersion is the group and version, such as apps/v1.
	// +required
	GroupVersion string `json:"groupVersion"`

	// Resources are the resources without subresources, sorted by name.
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

// ResourceSummary is the sum of the allocatable and of the used resources of
// the nodes of a cluster.
type ResourceSummary struct {
	// Allocatable is the sum of the allocatable resources of all nodes.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Allocating is the sum of the requests of pods that are not bound to a
	// node.
	// +optional
	Allocating corev1.ResourceList `json:"allocating,omitempty"`

	// Allocated is the sum of the requests of pods that are bound to a node and
	// not finished.
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
