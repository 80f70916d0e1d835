package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Etcd is the storage of a control plane: an etcd that the operator installs,
// or an existing etcd. One of the fields must be set.
type Etcd struct {
	// Local is an etcd that the operator installs beside the control plane.
	// Default unless external is set.
	// +optional
	Local *LocalEtcd `json:"local,omitempty"`

	// External is an existing etcd.
	// +optional
	External *ExternalEtcd `json:"external,omitempty"`
}

// LocalEtcd is an etcd that the operator installs. An odd number of replicas is
// advisable. The number cannot be changed later.
type LocalEtcd struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// VolumeData is the volume for the data. Unset means an emptyDir: the data
	// is lost when the pod is deleted.
	// +optional
	VolumeData *VolumeData `json:"volumeData,omitempty"`

	// ServerCertSANs are names and addresses to add to the server certificate.
	// +optional
	ServerCertSANs []string `json:"serverCertSANs,omitempty"`

	// PeerCertSANs are names and addresses to add to the certificate that the
	// etcd members use for connections to each other.
	// +optional
	PeerCertSANs []string `json:"peerCertSANs,omitempty"`
}

// VolumeData is the volume for the data of etcd. At most one of the fields
// should be set.
type VolumeData struct {
	// VolumeClaim creates a PersistentVolumeClaim for each pod.
	// +optional
	VolumeClaim *corev1.PersistentVolumeClaimTemplate `json:"volumeClaim,omitempty"`

	// HostPath stores the data in a directory of the node. The pods must then
	// stay on their nodes, for instance by node affinity.
	// +optional
	HostPath *corev1.HostPathVolumeSource `json:"hostPath,omitempty"`

	// EmptyDir stores the data until the pod is deleted. Default when no field
	// is set.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`
}

// ExternalEtcd is an existing etcd.
type ExternalEtcd struct {
	// Endpoints are the URLs of the etcd members, such as
	// "https://etcd-0.example.com:2379".
	// +required
	Endpoints []string `json:"endpoints"`

	// SecretRef refers to the Secret with the client certificate, under the
	// keys "ca.crt", "tls.crt" and "tls.key". The Secret must be in the
	// namespace of the object. Its name must be "<name>-etcd-cert" when the
	// name of the object contains "karmada", otherwise
	// "<name>-karmada-etcd-cert".
	// +required
	SecretRef LocalSecretReference `json:"secretRef"`
}
