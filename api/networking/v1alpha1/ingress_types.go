package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MultiClusterIngress is an Ingress whose backends may be in any cluster.
// External providers implement it; the control plane stores and validates it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=multiclusteringresses,scope=Namespaced,shortName=mci,categories={karmada-io}
// +kubebuilder:storageversion
type MultiClusterIngress struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the rules, as in an Ingress.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.defaultBackend) || (has(self.rules) && size(self.rules) > 0)",message="defaultBackend or rules are needed"
	// +kubebuilder:validation:XValidation:rule="!has(self.defaultBackend) || has(self.defaultBackend.service) != has(self.defaultBackend.resource)",message="a backend is either a service or a resource",fieldPath=".defaultBackend"
	Spec networkingv1.IngressSpec `json:"spec,omitempty"`

	// Status reports the addresses and the clusters of the ingress.
	// +optional
	Status MultiClusterIngressStatus `json:"status,omitempty"`
}

// MultiClusterIngressStatus reports the addresses and the clusters of an
// ingress.
type MultiClusterIngressStatus struct {
	// IngressStatus is the status as in an Ingress.
	networkingv1.IngressStatus `json:",inline"`

	// TrafficBlockClusters are the names of the clusters to which no traffic
	// must be sent, for instance because of a Remedy.
	// +optional
	TrafficBlockClusters []string `json:"trafficBlockClusters,omitempty"`

	// ServiceLocations lists the clusters of each backend Service.
	// +optional
	ServiceLocations []ServiceLocation `json:"serviceLocations,omitempty"`
}

// ServiceLocation lists the clusters of one backend Service.
type ServiceLocation struct {
	// Name is the name of the Service, in the namespace of the ingress.
	// +required
	Name string `json:"name"`

	// Clusters are the names of the clusters that have the Service.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
}

// MultiClusterIngressList is a list of ingresses.
//
// +kubebuilder:object:root=true
type MultiClusterIngressList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the ingresses.
	Items []MultiClusterIngress `json:"items"`
}
