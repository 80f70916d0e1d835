package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FederatedHPA scales a workload by its metrics. The pods of all clusters that
// run the workload count as one set. It sets the replicas of the template in
// the control plane.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=federatedhpas,scope=Namespaced,shortName=fhpa,categories={karmada-io}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name=`REFERENCE-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name=`REFERENCE-NAME`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.minReplicas`,name=`MINPODS`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.spec.maxReplicas`,name=`MAXPODS`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.currentReplicas`,name=`REPLICAS`,type=integer
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type FederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the target to scale, the metrics and the bounds.
	// +required
	Spec FederatedHPASpec `json:"spec"`

	// Status holds the last metrics and the last decision.
	// +optional
	Status FederatedHPAStatus `json:"status,omitempty"`
}

// FederatedHPASpec defines the target to scale, the metrics and the bounds.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.maxReplicas >= self.minReplicas",message="must not be less than minReplicas",fieldPath=".maxReplicas"
type FederatedHPASpec struct {
	// ScaleTargetRef is the workload to scale, in the namespace of this object.
	// The workload needs a scale subresource and must be propagated by a
	// policy.
	// +required
	// +kubebuilder:validation:XValidation:rule="size(self.kind) > 0 && size(self.name) > 0",message="the target is found by kind and name"
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// MinReplicas is the smallest number of replicas over all clusters to scale
	// down to. At least 1. Defaults to 1.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="must be at least 1"
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the largest number of replicas over all clusters to scale
	// up to. At least 1 and not below minReplicas.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="must be at least 1"
	MaxReplicas int32 `json:"maxReplicas"`

	// Metrics are the metrics and their target values. For each metric a number
	// of replicas is computed. The largest number is used. The types Resource,
	// ContainerResource, Pods and Object are supported. Defaults to an average
	// CPU utilization of 80 percent of the requests.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(m, m.type in ['Object','Pods','Resource','ContainerResource'])",message="the types of metrics are Object, Pods, Resource and ContainerResource"
	// +kubebuilder:validation:XValidation:rule="self.all(m, !has(m.external) && has(m.object) == (m.type == 'Object') && has(m.pods) == (m.type == 'Pods'))",message="a metric has the source that its type names, and no other"
	// +kubebuilder:validation:XValidation:rule="self.all(m, has(m.resource) == (m.type == 'Resource') && has(m.containerResource) == (m.type == 'ContainerResource'))",message="a metric has the source that its type names, and no other"
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// Behavior limits how fast the workload is scaled up and down. Unset means
	// that one step may scale up to the larger of 4 replicas and twice the
	// current number, and that the workload is scaled down to the largest
	// number recommended within a window, 5 minutes unless configured
	// otherwise. When it is set, fields left out have defaults: scale up by the
	// larger of 4 pods and 100 percent each 15 seconds without a window, scale
	// down by up to 100 percent each 15 seconds.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.scaleUp) || !has(self.scaleUp.stabilizationWindowSeconds) || (self.scaleUp.stabilizationWindowSeconds >= 0 && self.scaleUp.stabilizationWindowSeconds <= 3600)",message="must be between 0 and 3600",fieldPath=".scaleUp.stabilizationWindowSeconds"
	// +kubebuilder:validation:XValidation:rule="!has(self.scaleUp) || !has(self.scaleUp.selectPolicy) || self.scaleUp.selectPolicy in ['Max','Min','Disabled']",message="must be Max, Min or Disabled",fieldPath=".scaleUp.selectPolicy"
	// +kubebuilder:validation:XValidation:rule="!has(self.scaleUp) || (has(self.scaleUp.policies) && size(self.scaleUp.policies) > 0 && self.scaleUp.policies.all(p, p.type in ['Pods','Percent'] && p.value > 0 && p.periodSeconds >= 1 && p.periodSeconds <= 1800))",message="at least one policy is needed, each of type Pods or Percent, with a value above 0 and periodSeconds between 1 and 1800",fieldPath=".scaleUp"
	// +kubebuilder:validation:XValidation:rule="!has(self.scaleDown) || !has(self.scaleDown.stabilizationWindowSeconds) || (self.scaleDown.stabilizationWindowSeconds >= 0 && self.scaleDown.stabilizationWindowSeconds <= 3600)",message="must be between 0 and 3600",fieldPath=".scaleDown.stabilizationWindowSeconds"
	// +kubebuilder:validation:XValidation:rule="!has(self.scaleDown) || !has(self.scaleDown.selectPolicy) || self.scaleDown.selectPolicy in ['Max','Min','Disabled']",message="must be Max, Min or Disabled",fieldPath=".scaleDown.selectPolicy"
	// +kubebuilder:validation:XValidation:rule="!has(self.scaleDown) || (has(self.scaleDown.policies) && size(self.scaleDown.policies) > 0 && self.scaleDown.policies.all(p, p.type in ['Pods','Percent'] && p.value > 0 && p.periodSeconds >= 1 && p.periodSeconds <= 1800))",message="at least one policy is needed, each of type Pods or Percent, with a value above 0 and periodSeconds between 1 and 1800",fieldPath=".scaleDown"
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// FederatedHPAStatus holds the last metrics and the last decision.
type FederatedHPAStatus struct {
	// ObservedGeneration is the generation of the spec that this status
	// describes.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// LastScaleTime is the time at which this autoscaler last changed the
	// number of replicas. Unset means never.
	// +optional
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`

	// CurrentReplicas is the number of replicas of the template when it was
	// last read.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// DesiredReplicas is the last computed number of replicas.
	// +required
	DesiredReplicas int32 `json:"desiredReplicas"`

	// CurrentMetrics are the last measured values of the metrics of the spec.
	// +optional
	// +listType=atomic
	CurrentMetrics []autoscalingv2.MetricStatus `json:"currentMetrics,omitempty"`

	// Conditions report whether the autoscaler works: AbleToScale (the target
	// can be read and changed), ScalingActive (a number can be computed from
	// the metrics) and ScalingLimited (the computed number is outside the
	// bounds).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []autoscalingv2.HorizontalPodAutoscalerCondition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// FederatedHPAList is a list of federated autoscalers.
//
// +kubebuilder:object:root=true
type FederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the autoscalers.
	Items []FederatedHPA `json:"items"`
}
