package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CommonSettings are the settings that every component has.
type CommonSettings struct {
	// Image is the image to run.
	Image `json:",inline"`

	// ImagePullPolicy defines when the image is pulled: Always, IfNotPresent or
	// Never. Defaults to IfNotPresent.
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// Replicas is the number of pods. Defaults to 1, for the metrics adapter
	// to 2.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Labels are added to the workload and to its pods. They replace labels of
	// the operator with the same key.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are added to the workload and to its pods. They replace
	// annotations of the operator with the same key.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Resources are the requests and limits of the component's container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// PriorityClassName is the priority class of the pods. Defaults to
	// "system-node-critical".
	// +optional
	// +kubebuilder:default="system-node-critical"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Affinity is the affinity of the pods. It replaces the affinity that the
	// operator sets.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// Tolerations are the taints of nodes that the pods tolerate. They replace
	// the tolerations that the operator sets.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// PodDisruptionBudgetConfig creates a PodDisruptionBudget for the pods.
	// Unset means none.
	// +optional
	PodDisruptionBudgetConfig *PodDisruptionBudgetConfig `json:"podDisruptionBudgetConfig,omitempty"`
}

// Image is a container image.
type Image struct {
	// ImageRepository is the image without its tag, such as
	// "docker.io/karmada/karmada-scheduler". Defaults to the component's image
	// in the public registry, or in the private one when that is set.
	// +optional
	ImageRepository string `json:"imageRepository,omitempty"`

	// ImageTag is the tag of the image. Karmada components default to the
	// release of the operator. Etcd and Kubernetes components default to the
	// versions that this release supports.
	// +optional
	ImageTag string `json:"imageTag,omitempty"`
}

// PodDisruptionBudgetConfig limits voluntary disruptions of a component's pods.
// Exactly one of its fields must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) || has(self.maxUnavailable)",message="one of minAvailable and maxUnavailable is needed"
// +kubebuilder:validation:XValidation:rule="!(has(self.minAvailable) && has(self.maxUnavailable))",message="minAvailable and maxUnavailable exclude each other"
type PodDisruptionBudgetConfig struct {
	// MinAvailable is the number of pods that must stay available, as a number
	// or as a percentage such as "50%".
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// MaxUnavailable is the number of pods that may be unavailable, as a number
	// or as a percentage such as "50%".
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}
