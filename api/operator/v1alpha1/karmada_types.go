package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Karmada describes one control plane. The operator installs it in the
// namespace of the object, keeps it as described, and removes it when the
// object is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=karmadas,scope=Namespaced,categories={karmada-io}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].status`,name=`READY`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type Karmada struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired control plane. All fields have defaults.
	// +optional
	Spec KarmadaSpec `json:"spec,omitempty"`

	// Status reports whether the control plane is ready, and how to reach it.
	// +optional
	Status KarmadaStatus `json:"status,omitempty"`
}

// KarmadaSpec is the desired control plane.
type KarmadaSpec struct {
	// HostCluster is the cluster that runs the control plane. Unset means the
	// cluster of the operator.
	// +optional
	HostCluster *HostCluster `json:"hostCluster,omitempty"`

	// PrivateRegistry is the registry from which all images are pulled. The
	// imageRepository of a component takes precedence. Unset means the public
	// registries.
	// +optional
	PrivateRegistry *ImageRegistry `json:"privateRegistry,omitempty"`

	// Components are the settings of the components. All are installed, except
	// that search and descheduler are installed only when they are listed here.
	// +optional
	Components *KarmadaComponents `json:"components,omitempty"`

	// FeatureGates switches features on or off in all Karmada components, by
	// name. The featureGates of a component take precedence.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// CRDTarball is the source of the CustomResourceDefinitions of the control
	// plane. Unset means the definitions of the operator's release.
	// +optional
	CRDTarball *CRDTarball `json:"crdTarball,omitempty"`

	// CustomCertificate configures the certificates. Unset means a new
	// certificate authority for the control plane.
	// +optional
	CustomCertificate *CustomCertificate `json:"customCertificate,omitempty"`

	// Suspend true stops the operator from changing the control plane, even
	// when the object is deleted. The deletion then continues when suspend is
	// false. Defaults to false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// HostCluster is the cluster that runs a control plane.
type HostCluster struct {
	// APIEndpoint is the address of the API server of the host cluster. It is
	// informative: the operator uses the kubeconfig in secretRef.
	// +optional
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// SecretRef refers to the Secret that holds, under the key "kubeconfig",
	// the credentials of a host cluster other than the cluster of the operator.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// Networking describes the network of the host cluster.
	// +optional
	Networking *Networking `json:"networking,omitempty"`
}

// Networking describes the network of a host cluster.
type Networking struct {
	// DNSDomain is the domain of the Services in the host cluster. Defaults to
	// "cluster.local".
	// +optional
	DNSDomain *string `json:"dnsDomain,omitempty"`
}

// LocalSecretReference refers to a Secret in the cluster of the operator.
type LocalSecretReference struct {
	// Namespace is the namespace of the Secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the Secret.
	// +optional
	Name string `json:"name,omitempty"`
}

// ImageRegistry is a registry of container images.
type ImageRegistry struct {
	// Registry is the host, with port and path if any, such as
	// "registry.example.com:5000/karmada".
	// +required
	Registry string `json:"registry"`
}

// CRDDownloadPolicy defines when CustomResourceDefinitions are downloaded.
//
// +kubebuilder:validation:Enum=Always;IfNotPresent
type CRDDownloadPolicy string

const (
	// DownloadAlways downloads at each run of the installation.
	DownloadAlways CRDDownloadPolicy = "Always"
	// DownloadIfNotPresent downloads only what is not in the operator's cache.
	DownloadIfNotPresent CRDDownloadPolicy = "IfNotPresent"
)

// CRDTarball is the source of the CustomResourceDefinitions of a control plane.
type CRDTarball struct {
	// HTTPSource is the file to download.
	// +optional
	HTTPSource *HTTPSource `json:"httpSource,omitempty"`

	// CRDDownloadPolicy defines when the file is downloaded: Always, or
	// IfNotPresent, which means when the operator has no copy from the same
	// URL. Defaults to IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	CRDDownloadPolicy *CRDDownloadPolicy `json:"crdDownloadPolicy,omitempty"`
}

// HTTPSource is a file to download.
type HTTPSource struct {
	// URL is the absolute address of a gzipped tar file.
	// +required
	URL string `json:"url"`

	// Proxy is the proxy to download through. Unset means none.
	// +optional
	Proxy *ProxyConfig `json:"proxy,omitempty"`
}

// ProxyConfig is an HTTP proxy.
type ProxyConfig struct {
	// ProxyURL is the absolute address of the proxy.
	// +required
	ProxyURL string `json:"proxyURL"`
}

// CustomCertificate configures the certificates of a control plane.
type CustomCertificate struct {
	// APIServerCACert refers to the Secret that holds, under the keys "tls.crt"
	// and "tls.key", the certificate authority that signs the certificates of
	// the API server and of its clients. Unset means a new one.
	// +optional
	APIServerCACert *LocalSecretReference `json:"apiServerCACert,omitempty"`

	// LeafCertValidityDays is the number of days for which certificates are
	// valid, except those of certificate authorities. At least 1. Defaults to
	// 365. A change applies to certificates issued later.
	// +optional
	// +kubebuilder:validation:Minimum=1
	LeafCertValidityDays *int32 `json:"leafCertValidityDays,omitempty"`
}

// KarmadaStatus reports whether a control plane is ready, and how to reach it.
type KarmadaStatus struct {
	// ObservedGeneration is the generation of the spec that this status
	// describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// SecretRef refers to the Secret with the kubeconfig of an administrator of
	// the control plane, under the key "karmada.config".
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// KarmadaVersion is the version of the Karmada components.
	// +optional
	KarmadaVersion string `json:"karmadaVersion,omitempty"`

	// KubernetesVersion is the version of the Kubernetes components.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// Conditions report whether the control plane is Ready: True with the
	// reason Completed; False with Progressing, Failed or ValidationError.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// APIServerService is the Service of the API server of the control plane.
	// +optional
	APIServerService *APIServerService `json:"apiServerService,omitempty"`
}

// APIServerService is the Service of an API server.
type APIServerService struct {
	// Name is the name of the Service, in the namespace of the object.
	// +required
	Name string `json:"name"`
}

// KarmadaList is a list of control planes.
//
// +kubebuilder:object:root=true
type KarmadaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the control planes.
	Items []Karmada `json:"items"`
}
