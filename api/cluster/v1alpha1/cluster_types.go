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

	// Spec defines how the cluster is reached, and its properties.
	// +required
	Spec ClusterSpec `json:"spec"`

	// Status is the observed state of the cluster.
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

// ClusterSpec defines how a cluster is reached, and its properties.
type ClusterSpec struct {
	// ID identifies the cluster independently of its name: the UID of its
	// kube-system namespace. At most 128000 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128000
	ID string `json:"id,omitempty"`

	// SyncMode defines which component applies objects to the cluster. Push:
	// the control plane. Pull: the agent in the cluster.
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
	// that the cluster proxy uses to impersonate the user of a request.
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

	// Region is the region of the cluster. Placements refer to it.
	// +optional
	Region string `json:"region,omitempty"`

	// Zone is the zone of the cluster. Deprecated: use zones. The API server
	// moves the value to zones.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Zones are the zones of the cluster's nodes. Placements refer to them.
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Taints exclude objects that do not tolerate them. NoSchedule: no new
	// objects are scheduled to the cluster. NoExecute: objects are also evicted
	// from the cluster. timeAdded of a NoExecute taint is set by the API
	// server.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// ResourceModels are grades of nodes by their free resources. The scheduler
	// uses them to estimate how many replicas still fit. Grades are in
	// ascending order without gaps between their ranges. The first grade begins
	// at 0 and the last one ends at 9223372036854775807. Default: nine grades
	// of cpu and memory.
	// +optional
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// ClusterSyncMode defines which component applies objects to a cluster.
type ClusterSyncMode string

// Values of ClusterSyncMode.
const (
	// Push means that the control plane calls the API server of the cluster.
	Push ClusterSyncMode = "Push"
	// Pull means that an agent in the cluster calls the control plane.
	Pull ClusterSyncMode = "Pull"
)

// LocalSecretReference refers to a Secret in the control plane.
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
	// Grade is the rank of the grade: nodes of a higher grade have more free
	// resources. At least 0.
	// +required
	Grade uint `json:"grade"`

	// Ranges are the free resources of nodes of the grade, for each resource.
	// All grades have the same resources in the same order.
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
