package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceImport imports a Service that other clusters export. In the control
// plane, a Service named "derived-<name>" is created for it. The derived
// Service is propagated together with the collected endpoints, and pods connect
// to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=serviceimports,scope=Namespaced,shortName=svcim
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.spec.type`,name=`Type`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.ips`,name=`IP`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`Age`,type=date
type ServiceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the imported Service.
	// +optional
	Spec ServiceImportSpec `json:"spec,omitempty"`

	// Status lists the clusters that export the Service.
	// +optional
	Status ServiceImportStatus `json:"status,omitempty"`
}

// ServiceImportType defines how an imported Service is reached.
//
// +kubebuilder:validation:Enum=ClusterSetIP;Headless
type ServiceImportType string

const (
	// ClusterSetIP is a Service with one virtual address.
	ClusterSetIP ServiceImportType = "ClusterSetIP"
	// Headless is a Service whose name resolves to the addresses of its pods.
	// It is stored, but no derived Service is created.
	Headless ServiceImportType = "Headless"
)

// ServiceImportSpec defines an imported Service.
type ServiceImportSpec struct {
	// Ports are the ports of the Service.
	// +required
	// +listType=atomic
	Ports []ServicePort `json:"ports"`

	// IPs is the virtual address of the Service, at most one. Used only by the
	// type ClusterSetIP.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	IPs []string `json:"ips,omitempty"`

	// Type defines how the Service is reached: ClusterSetIP by one virtual
	// address, Headless by the addresses of its pods.
	// +required
	Type ServiceImportType `json:"type"`

	// SessionAffinity defines whether connections of one client go to one pod:
	// "None" or "ClientIP". Ignored for the type Headless. Defaults to None.
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// SessionAffinityConfig sets the timeout of the session affinity ClientIP.
	// +optional
	SessionAffinityConfig *corev1.SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
}

// ServicePort is a port of an imported Service.
type ServicePort struct {
	// Name names the port, unique in the Service. It may be left out when the
	// Service has only one port.
	// +optional
	Name string `json:"name,omitempty"`

	// Protocol is TCP, UDP or SCTP. Defaults to TCP.
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// AppProtocol names the protocol spoken over the port, as in a Service.
	// +optional
	AppProtocol *string `json:"appProtocol,omitempty"`

	// Port is the number of the port, 1 to 65535. The derived Service uses the
	// same number as its target port.
	// +required
	Port int32 `json:"port"`
}

// ServiceImportStatus lists the clusters that export a Service.
type ServiceImportStatus struct {
	// Clusters are the clusters that export the Service.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +patchStrategy=merge
	// +patchMergeKey=cluster
	Clusters []ClusterStatus `json:"clusters,omitempty" patchStrategy:"merge" patchMergeKey:"cluster"`
}

// ClusterStatus is a cluster that exports a Service.
type ClusterStatus struct {
	// Cluster is the name of the cluster.
	// +required
	Cluster string `json:"cluster"`
}

// ServiceImportList is a list of imports.
//
// +kubebuilder:object:root=true
type ServiceImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the imports.
	Items []ServiceImport `json:"items"`
}
