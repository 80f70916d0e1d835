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

// Work is a set of manifests for one cluster: the one whose execution namespace,
// karmada-es-<cluster>, it lies in.
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

	// Spec is what is to be in the cluster.
	// +required
	Spec WorkSpec `json:"spec"`

	// Status is how it is there.
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

// WorkSpec is what is to be in a cluster.
type WorkSpec struct {
	// Workload holds the manifests.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`

	// SuspendDispatching true stops the delivery of changes to the cluster; what
	// is there stays as it is. Default false.
	// +optional
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in the cluster when the Work
	// is deleted. Default false: they are deleted too.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate holds manifests.
type WorkloadTemplate struct {
	// Manifests are the objects, as they are to be in the cluster.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is an object of any kind, as it is to be in the cluster.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is how the manifests of a Work are in the cluster.
type WorkStatus struct {
	// Conditions are Applied (the cluster has all manifests in their present
	// form) and Dispatching (changes are delivered).
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ManifestStatuses is how each manifest is in the cluster.
	// +optional
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`
}

// ManifestStatus is how a manifest is in the cluster.
type ManifestStatus struct {
	// Identifier says which manifest it is.
	// +required
	Identifier ResourceIdentifier `json:"identifier"`

	// Status is the status of the object in the cluster, as far as it is
	// collected for its kind.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Health is Healthy, Unhealthy, or Unknown as long as nothing is known.
	// +optional
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceIdentifier says which manifest of a Work is meant.
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

// ResourceHealth says whether an object does in a cluster what it is for.
type ResourceHealth string

// Values of ResourceHealth.
const (
	// ResourceHealthy is for an object that works.
	ResourceHealthy ResourceHealth = "Healthy"
	// ResourceUnhealthy is for an object that does not work.
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	// ResourceUnknown is for an object of which nothing is known.
	ResourceUnknown ResourceHealth = "Unknown"
)
