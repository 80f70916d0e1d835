package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceImport makes a Service that other clusters export usable. In the
// control plane it yields a Service named "derived-" and the name of the import,
// which, propagated together with the collected endpoints, is what pods use.
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

	// Spec says how the imported Service looks.
	// +optional
	Spec ServiceImportSpec `json:"spec,omitempty"`

	// Status tells from which clusters the Service comes.
	// +optional
	Status ServiceImportStatus `json:"status,omitempty"`
}

// ServiceImportType says how an imported Service is reached.
//
// +kubebuilder:validation:Enum=ClusterSetIP;Headless
type ServiceImportType string

const (
	// ClusterSetIP is a Service with one virtual address.
	ClusterSetIP ServiceImportType = "ClusterSetIP"
	// Headless is a Service whose name stands for the addresses of its pods. It
	// is stored but yields no derived Service.
	Headless ServiceImportType = "Headless"
)

// ServiceImportSpec says how an imported Service looks.
type ServiceImportSpec struct {
	// Ports are the ports of the Service.
	// +required
	// +listType=atomic
	Ports []ServicePort `json:"ports"`

	// IPs is the virtual address of the Service, at most one. It has a meaning
	// for the type ClusterSetIP only.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	IPs []string `json:"ips,omitempty"`

	// Type says how the Service is reached: ClusterSetIP by one virtual address,
	// Headless by the addresses of its pods.
	// +required
	Type ServiceImportType `json:"type"`

	// SessionAffinity says whether connections of one client go to one pod:
	// "None" or "ClientIP". Ignored for the type Headless. Defaults to None.
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// SessionAffinityConfig sets how long a client keeps its pod, with the
	// session affinity ClientIP.
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

	// Port is the number of the port, 1 to 65535. Pods listen on the same
	// number as far as the derived Service is concerned.
	// +required
	Port int32 `json:"port"`
}

// ServiceImportStatus tells from which clusters a Service comes.
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
