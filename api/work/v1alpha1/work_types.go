package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kind and resource name of Work.
const (
	ResourceKindWork   = "Work"
	ResourcePluralWork = "works"
)

// Work is a set of manifests for one cluster. It is in the execution namespace
// of the cluster, karmada-es-<cluster>.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=wk
// +kubebuilder:printcolumn:JSONPath=`.spec.workload.manifests[*].kind`,name="WORKLOAD-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Applied")].status`,name="APPLIED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the manifests to apply in the cluster.
	// +required
	Spec WorkSpec `json:"spec"`

	// Status is the status of the manifests in the cluster.
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkList is a list of Work.
//
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Works.
	Items []Work `json:"items"`
}

// WorkSpec holds the manifests to apply in a cluster.
type WorkSpec struct {
	// Workload holds the manifests.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`

	// SuspendDispatching true stops the delivery of changes to the cluster.
	// Member objects that exist stay unchanged. Default false.
	// +optional
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in the cluster when the Work
	// is deleted. Default false: they are deleted too.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate holds manifests.
type WorkloadTemplate struct {
	// Manifests are the desired objects in the cluster.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is the desired state of an object of any kind in the cluster.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is the status of the manifests of a Work in the cluster.
type WorkStatus struct {
	// Conditions are Applied (all current manifests are applied in the cluster)
	// and Dispatching (changes are delivered).
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ManifestStatuses holds the status of each manifest in the cluster.
	// +optional
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`
}

// ManifestStatus is the status of one manifest in the cluster.
type ManifestStatus struct {
	// Identifier identifies the manifest.
	// +required
	Identifier ResourceIdentifier `json:"identifier"`

	// Status holds the fields of the object's status that are collected for its
	// kind.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Health is Healthy, Unhealthy, or Unknown while the health is not known.
	// +optional
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceIdentifier identifies a manifest of a Work.
type ResourceIdentifier struct {
	// Ordinal is the index of the manifest in spec.workload.manifests, from 0.
	// +required
	Ordinal int `json:"ordinal"`

	// Group is the API group of the object; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Version is the API version of the object, without the group.
	// +required
	Version string `json:"version"`

	// Kind is the kind of the object.
	// +required
	Kind string `json:"kind"`

	// Resource is the name of the resource; Karmada leaves it empty.
	// +required
	Resource string `json:"resource"`

	// Namespace is the namespace of the object; empty when it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the object.
	// +required
	Name string `json:"name"`
}

// ResourceHealth is the health of an object in a cluster.
type ResourceHealth string

// Values of ResourceHealth.
const (
	// ResourceHealthy means that the object is healthy.
	ResourceHealthy ResourceHealth = "Healthy"
	// ResourceUnhealthy means that the object is not healthy.
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	// ResourceUnknown means that the health of the object is not known.
	ResourceUnknown ResourceHealth = "Unknown"
)
