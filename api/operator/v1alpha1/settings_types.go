package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CommonSettings are the settings that every component has.
type CommonSettings struct {
	// Image is the image to run.
	Image `json:",inline"`

	// ImagePullPolicy says when the image is pulled: Always, IfNotPresent or
	// Never. Defaults to IfNotPresent.
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// Replicas is the number of pods. Defaults to 1, for the metrics adapter
	// to 2.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Labels are added to the workload and to its pods. A label that the
	// operator sets itself can be replaced so.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are added to the workload and to its pods. An annotation that
	// the operator sets itself can be replaced so.
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

	// Affinity says on which nodes of the host cluster the pods may run. It
	// replaces the affinity that the operator sets itself.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// Tolerations are the taints of nodes that the pods tolerate. They replace
	// the tolerations that the operator sets itself.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// PodDisruptionBudgetConfig makes a PodDisruptionBudget for the pods. Unset
	// means none.
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

	// ImageTag is the tag of the image. Defaults to the release of the operator
	// for Karmada components, and to the version that this release is made for
	// in the case of etcd and of Kubernetes components.
	// +optional
	ImageTag string `json:"imageTag,omitempty"`
}

// PodDisruptionBudgetConfig limits voluntary disruptions of a component's pods.
// Exactly one of its fields must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) || has(self.maxUnavailable)",message="one of minAvailable and maxUnavailable is needed"
// +kubebuilder:validation:XValidation:rule="!(has(self.minAvailable) && has(self.maxUnavailable))",message="minAvailable and maxUnavailable exclude each other"
type PodDisruptionBudgetConfig struct {
	// MinAvailable is how many pods must stay, as a number or as a percentage
	// such as "50%".
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// MaxUnavailable is how many pods may be missing, as a number or as a
	// percentage such as "50%".
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}
