package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MultiClusterService exposes the Service of the same name and namespace beyond
// the clusters that run its pods: to pods in other clusters, under its own name,
// or to the outside. Addresses of pods are copied as they are, so pods of
// different clusters must be able to reach each other.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=multiclusterservices,scope=Namespaced,shortName=mcs,categories={karmada-io}
// +kubebuilder:storageversion
type MultiClusterService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines how the Service is exposed, and by and to which clusters.
	// +required
	Spec MultiClusterServiceSpec `json:"spec"`

	// Status reports whether the Service is exposed.
	// +optional
	Status MultiClusterServiceStatus `json:"status,omitempty"`
}

// MultiClusterServiceSpec defines how a Service is exposed, and by and to which
// clusters.
type MultiClusterServiceSpec struct {
	// Types defines how the Service is exposed: CrossCluster to pods in other
	// clusters, LoadBalancer to the outside by an external provider. Only one
	// type can be given, and it cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the types are immutable; delete the object and create it anew"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t == 'CrossCluster' || t == 'LoadBalancer')",message="a service is exposed as CrossCluster or LoadBalancer"
	// +kubebuilder:validation:XValidation:rule="!('CrossCluster' in self && 'LoadBalancer' in self)",message="a service is exposed in one way; name one type"
	Types []ExposureType `json:"types"`

	// Ports are the ports of the Service to expose. Empty means all of them.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.port >= 1 && p.port <= 65535)",message="the number of a port is between 1 and 65535"
	Ports []ExposurePort `json:"ports,omitempty"`

	// Range is deprecated and has no effect: use providerClusters and
	// consumerClusters.
	// +optional
	Range ExposureRange `json:"range,omitempty"`

	// ServiceProvisionClusters is deprecated and has no effect: use
	// providerClusters.
	// +optional
	ServiceProvisionClusters []string `json:"serviceProvisionClusters,omitempty"`

	// ServiceConsumptionClusters is deprecated and has no effect: use
	// consumerClusters.
	// +optional
	ServiceConsumptionClusters []string `json:"serviceConsumptionClusters,omitempty"`

	// ProviderClusters are the clusters whose pods serve the requests. Empty
	// means every cluster, including clusters that join later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.name) >= 1 && size(c.name) <= 48)",message="the name of a cluster has 1 to 48 characters"
	ProviderClusters []ClusterSelector `json:"providerClusters,omitempty"`

	// ConsumerClusters are the clusters whose pods can use the Service. Empty
	// means every cluster, including clusters that join later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.name) >= 1 && size(c.name) <= 48)",message="the name of a cluster has 1 to 48 characters"
	ConsumerClusters []ClusterSelector `json:"consumerClusters,omitempty"`
}

// ClusterSelector selects clusters.
type ClusterSelector struct {
	// Name is the name of the cluster.
	// +required
	Name string `json:"name"`
}

// ExposureType is a way to expose a Service.
type ExposureType string

const (
	// ExposureTypeCrossCluster makes a Service usable by pods of other clusters.
	ExposureTypeCrossCluster ExposureType = "CrossCluster"
	// ExposureTypeLoadBalancer makes a Service usable from outside through a
	// load balancer over all clusters. External providers implement it.
	ExposureTypeLoadBalancer ExposureType = "LoadBalancer"
)

// ExposurePort is a port of a Service to expose.
type ExposurePort struct {
	// Name is the name of the port in the Service. Needed when several ports
	// are listed.
	// +optional
	Name string `json:"name,omitempty"`

	// Port is the number of the port in the Service, 1 to 65535.
	// +required
	Port int32 `json:"port"`
}

// ExposureRange is the deprecated list of the clusters of a Service.
type ExposureRange struct {
	// ClusterNames are names of clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// MultiClusterServiceStatus reports whether a Service is exposed.
type MultiClusterServiceStatus struct {
	// LoadBalancer holds the addresses given by the provider of a Service of
	// type LoadBalancer.
	// +optional
	LoadBalancer corev1.LoadBalancerStatus `json:"loadBalancer,omitempty"`

	// Conditions report the progress of a Service of type CrossCluster:
	// ServiceApplied (the Service is in the clusters) and
	// EndpointSliceDispatched (its endpoints are in the consumer clusters).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// MultiClusterServiceList is a list of services.
//
// +kubebuilder:object:root=true
type MultiClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the services.
	Items []MultiClusterService `json:"items"`
}
