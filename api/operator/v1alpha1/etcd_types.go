package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Etcd is the store of a control plane: one that the operator installs, or one
// that exists. One of the fields must be set.
type Etcd struct {
	// Local is an etcd that the operator installs beside the control plane.
	// Default unless external is set.
	// +optional
	Local *LocalEtcd `json:"local,omitempty"`

	// External is an etcd that exists already.
	// +optional
	External *ExternalEtcd `json:"external,omitempty"`
}

// LocalEtcd is an etcd that the operator installs. An odd number of replicas is
// advisable. The number cannot be changed later.
type LocalEtcd struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// VolumeData is where the data is kept. Unset means an emptyDir, so that
	// the data is lost with the pod.
	// +optional
	VolumeData *VolumeData `json:"volumeData,omitempty"`

	// ServerCertSANs are names and addresses to add to the server certificate.
	// +optional
	ServerCertSANs []string `json:"serverCertSANs,omitempty"`

	// PeerCertSANs are names and addresses to add to the certificate that
	// members use among themselves.
	// +optional
	PeerCertSANs []string `json:"peerCertSANs,omitempty"`
}

// VolumeData is where etcd keeps its data. At most one of the fields should be
// set.
type VolumeData struct {
	// VolumeClaim makes a persistent volume claim for each pod.
	// +optional
	VolumeClaim *corev1.PersistentVolumeClaimTemplate `json:"volumeClaim,omitempty"`

	// HostPath keeps the data in a directory of the node. The pods must then be
	// bound to their nodes, by affinity for instance.
	// +optional
	HostPath *corev1.HostPathVolumeSource `json:"hostPath,omitempty"`

	// EmptyDir keeps the data as long as the pod exists. Default when nothing
	// is set.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`
}

// ExternalEtcd is an etcd that exists already.
type ExternalEtcd struct {
	// Endpoints are the URLs of the members, such as
	// "https://etcd-0.example.com:2379".
	// +required
	Endpoints []string `json:"endpoints"`

	// SecretRef names the Secret with the client certificate, under the keys
	// "ca.crt", "tls.crt" and "tls.key". It must be in the namespace of the
	// object and bear the name that the operator gives to the etcd certificates:
	// "<name>-etcd-cert" when the name of the object contains "karmada",
	// otherwise "<name>-karmada-etcd-cert".
	// +required
	SecretRef LocalSecretReference `json:"secretRef"`
}
