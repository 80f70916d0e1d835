package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// KarmadaComponents are the settings of the components of a control plane.
type KarmadaComponents struct {
	// Etcd is the store of the control plane.
	// +required
	Etcd *Etcd `json:"etcd"`

	// KarmadaAPIServer is the API server, a kube-apiserver.
	// +optional
	KarmadaAPIServer *KarmadaAPIServer `json:"karmadaAPIServer,omitempty"`

	// KarmadaAggregatedAPIServer serves Cluster objects and the proxy to the
	// clusters.
	// +optional
	KarmadaAggregatedAPIServer *KarmadaAggregatedAPIServer `json:"karmadaAggregatedAPIServer,omitempty"`

	// KubeControllerManager runs the Kubernetes controllers that a control
	// plane needs, such as garbage collection.
	// +optional
	KubeControllerManager *KubeControllerManager `json:"kubeControllerManager,omitempty"`

	// KarmadaControllerManager runs the Karmada controllers.
	// +optional
	KarmadaControllerManager *KarmadaControllerManager `json:"karmadaControllerManager,omitempty"`

	// KarmadaScheduler chooses clusters for workloads.
	// +optional
	KarmadaScheduler *KarmadaScheduler `json:"karmadaScheduler,omitempty"`

	// KarmadaWebhook defaults and validates Karmada objects.
	// +optional
	KarmadaWebhook *KarmadaWebhook `json:"karmadaWebhook,omitempty"`

	// KarmadaDescheduler removes replicas from clusters that cannot run them.
	// It is installed only when this is set.
	// +optional
	KarmadaDescheduler *KarmadaDescheduler `json:"karmadaDescheduler,omitempty"`

	// KarmadaSearch serves objects of all clusters. It is installed only when
	// this is set.
	// +optional
	KarmadaSearch *KarmadaSearch `json:"karmadaSearch,omitempty"`

	// KarmadaMetricsAdapter serves metrics of all clusters.
	// +optional
	KarmadaMetricsAdapter *KarmadaMetricsAdapter `json:"karmadaMetricsAdapter,omitempty"`
}

// KarmadaAPIServer are the settings of the API server.
type KarmadaAPIServer struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// ServiceSubnet is the address range of Services in the control plane.
	// Defaults to "10.96.0.0/12".
	// +optional
	ServiceSubnet *string `json:"serviceSubnet,omitempty"`

	// ServiceType is the type of the API server's own Service in the host
	// cluster: ClusterIP, NodePort or LoadBalancer. On a host cluster other than
	// that of the operator ClusterIP cannot be used. Defaults to ClusterIP.
	// +optional
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`

	// LoadBalancerClass is the load balancer class of the Service, a DNS label.
	// Used only by the type LoadBalancer. Unset means the default class of the
	// host cluster.
	// +optional
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`

	// ServiceAnnotations are added to the Service.
	// +optional
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`

	// ExtraArgs are flags to set, by name without leading dashes. They take
	// precedence over the flags that the operator sets.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// CertSANs are names and addresses to add to the certificate of the API
	// server.
	// +optional
	CertSANs []string `json:"certSANs,omitempty"`

	// FeatureGates switches features of this component on or off, by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// SidecarContainers are containers to run beside the API server.
	// +optional
	SidecarContainers []corev1.Container `json:"sidecarContainers,omitempty"`

	// ExtraVolumes are volumes to add to the pods.
	// +optional
	ExtraVolumes []corev1.Volume `json:"extraVolumes,omitempty"`

	// ExtraVolumeMounts are mounts to add to the container of the API server.
	// +optional
	ExtraVolumeMounts []corev1.VolumeMount `json:"extraVolumeMounts,omitempty"`
}

// KarmadaAggregatedAPIServer are the settings of the aggregated API server.
type KarmadaAggregatedAPIServer struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// ExtraArgs are flags to set, by name without leading dashes. They take
	// precedence over the flags that the operator sets.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// CertSANs are names and addresses to add to the certificate of the server.
	// +optional
	CertSANs []string `json:"certSANs,omitempty"`

	// FeatureGates switches features of this component on or off, by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KubeControllerManager are the settings of the Kubernetes controllers.
type KubeControllerManager struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// Controllers are the controllers to run: "*" means all that are on by
	// default, "foo" means foo is on, "-foo" means foo is off. Defaults to the
	// controllers that a control plane needs.
	// +optional
	Controllers []string `json:"controllers,omitempty"`

	// ExtraArgs are flags to set, by name without leading dashes. They take
	// precedence over the flags that the operator sets.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// FeatureGates switches features of this component on or off, by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KarmadaControllerManager are the settings of the Karmada controllers.
type KarmadaControllerManager struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// Controllers are the controllers to run: "*" means all that are on by
	// default, "foo" means foo is on, "-foo" means foo is off. Defaults to
	// "*".
	// +optional
	Controllers []string `json:"controllers,omitempty"`

	// ExtraArgs are flags to set, by name without leading dashes. They take
	// precedence over the flags that the operator sets.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// FeatureGates switches features of this component on or off, by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KarmadaScheduler are the settings of the scheduler.
type KarmadaScheduler struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// ExtraArgs are flags to set, by name without leading dashes. They take
	// precedence over the flags that the operator sets.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// FeatureGates switches features of this component on or off, by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// KarmadaWebhook are the settings of the admission webhooks.
type KarmadaWebhook struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// ExtraArgs are flags to set, by name without leading dashes. They take
	// precedence over the flags that the operator sets.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}

// KarmadaDescheduler are the settings of the descheduler.
type KarmadaDescheduler struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// ExtraArgs are flags to set, by name without leading dashes. They take
	// precedence over the flags that the operator sets.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}

// KarmadaSearch are the settings of search.
type KarmadaSearch struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// ExtraArgs are flags to set, by name without leading dashes. They take
	// precedence over the flags that the operator sets.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}

// KarmadaMetricsAdapter are the settings of the metrics adapter.
type KarmadaMetricsAdapter struct {
	// CommonSettings are the settings that every component has.
	CommonSettings `json:",inline"`

	// ExtraArgs are flags to set, by name without leading dashes. They take
	// precedence over the flags that the operator sets.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}
