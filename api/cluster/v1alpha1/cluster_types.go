package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind and resource name of Cluster.
const (
	ResourceKindCluster     = "Cluster"
	ResourcePluralCluster   = "clusters"
	ResourceSingularCluster = "cluster"
)

// Cluster is a Kubernetes cluster to which Karmada propagates objects.
//
// +kubebuilder:object:root=true
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the cluster is reached and what it offers.
	// +required
	Spec ClusterSpec `json:"spec"`

	// Status is how the cluster is.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of Cluster.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the clusters.
	Items []Cluster `json:"items"`
}

// ClusterSpec says how a cluster is reached and what it offers.
type ClusterSpec struct {
	// ID identifies the cluster itself, whatever its name: the UID of its
	// kube-system namespace. At most 128000 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128000
	ID string `json:"id,omitempty"`

	// SyncMode says who applies objects to the cluster: Push is the control
	// plane, Pull is the agent in the cluster.
	// +required
	// +kubebuilder:validation:Enum=Push;Pull
	SyncMode ClusterSyncMode `json:"syncMode"`

	// APIEndpoint is the URL of the cluster's API server, such as
	// https://10.0.0.1:6443.
	// +optional
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// SecretRef is the Secret with the credentials of the control plane in the
	// cluster, under the keys token and caBundle. Needed with Push.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// ImpersonatorSecretRef is the Secret with the token, under the key token,
	// that requests through the cluster proxy use to act for their user.
	// +optional
	ImpersonatorSecretRef *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`

	// InsecureSkipTLSVerification turns off the check of the API server's
	// certificate. Not for production. Default false.
	// +optional
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`

	// ProxyURL is the proxy between the control plane and the cluster. Its
	// scheme is http, https or socks5. Empty means none.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`

	// ProxyHeader holds headers for the CONNECT request to the proxy. A value
	// with commas is sent as several values.
	// +optional
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`

	// Provider is the name of the cloud provider. Placements refer to it.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Region is the region that the cluster lies in. Placements refer to it.
	// +optional
	Region string `json:"region,omitempty"`

	// Zone is the zone that the cluster lies in. Deprecated: use zones, to which
	// the API server moves it.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Zones are the zones that the cluster's nodes lie in. Placements refer to
	// them.
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Taints keep objects away that do not tolerate them. NoSchedule lets
	// nothing new in; NoExecute drives out what is there. timeAdded of a
	// NoExecute taint is set by the API server.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// ResourceModels are grades of nodes by their free resources, used to tell
	// how many replicas still fit. Grades ascend, their ranges adjoin, the first
	// begins at 0 and the last ends at 9223372036854775807. Default: nine grades
	// of cpu and memory.
	// +optional
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// ClusterSyncMode says who applies objects to a cluster.
type ClusterSyncMode string

// Values of ClusterSyncMode.
const (
	// Push lets the control plane reach into the cluster.
	Push ClusterSyncMode = "Push"
	// Pull lets an agent in the cluster reach out to the control plane.
	Pull ClusterSyncMode = "Pull"
)

// LocalSecretReference points to a Secret in the control plane.
type LocalSecretReference struct {
	// Namespace is the namespace of the Secret.
	// +required
	Namespace string `json:"namespace"`

	// Name is the name of the Secret.
	// +required
	Name string `json:"name"`
}

// ResourceModel is a grade of nodes.
type ResourceModel struct {
	// Grade is the rank of the grade: the higher, the more is free. From 0.
	// +required
	Grade uint `json:"grade"`

	// Ranges are what nodes of the grade have free, for each resource. All
	// grades have the same resources in the same order.
	// +required
	Ranges []ResourceModelRange `json:"ranges"`
}

// ResourceModelRange is a range of a resource: min <= free < max.
type ResourceModelRange struct {
	// Name is the name of the resource, such as cpu.
	// +required
	Name corev1.ResourceName `json:"name"`

	// Min is the smallest quantity of the range.
	// +required
	Min resource.Quantity `json:"min"`

	// Max is the smallest quantity above the range.
	// +required
	Max resource.Quantity `json:"max"`
}

// ClusterProxyOptions are the query options of the proxy subresource.
//
// +kubebuilder:object:root=true
type ClusterProxyOptions struct {
	metav1.TypeMeta `json:",inline"`

	// Path is the part of the URL after /proxy/: the path of the request to the
	// cluster's API server.
	// +optional
	Path string `json:"path,omitempty"`
}
