package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronFederatedHPA changes the replicas of a workload, or the bounds of a
// FederatedHPA, at scheduled times.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=cronfederatedhpas,scope=Namespaced,shortName=cronfhpa,categories={karmada-io}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name=`REFERENCE-KIND`,type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name=`REFERENCE-NAME`,type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name=`AGE`,type=date
type CronFederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the target to scale and the schedule.
	// +required
	Spec CronFederatedHPASpec `json:"spec"`

	// Status holds the results of the last runs of each rule.
	// +optional
	Status CronFederatedHPAStatus `json:"status,omitempty"`
}

// CronFederatedHPASpec defines the target to scale and the schedule.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.scaleTargetRef.apiVersion) && self.scaleTargetRef.apiVersion == 'autoscaling.karmada.io/v1alpha1') || self.scaleTargetRef.kind == 'FederatedHPA'",message="of this group only FederatedHPA can be scaled",fieldPath=".scaleTargetRef.kind"
// +kubebuilder:validation:XValidation:rule="!(has(self.scaleTargetRef.apiVersion) && self.scaleTargetRef.apiVersion == 'autoscaling.karmada.io/v1alpha1') || self.rules.all(r, has(r.targetMinReplicas) || has(r.targetMaxReplicas))",message="a FederatedHPA needs targetMinReplicas, targetMaxReplicas, or both",reason=FieldValueRequired,fieldPath=".rules"
// +kubebuilder:validation:XValidation:rule="!(has(self.scaleTargetRef.apiVersion) && self.scaleTargetRef.apiVersion == 'autoscaling.karmada.io/v1alpha1') || self.rules.all(r, (!has(r.targetMinReplicas) || r.targetMinReplicas > 0) && (!has(r.targetMaxReplicas) || r.targetMaxReplicas > 0))",message="targetMinReplicas and targetMaxReplicas must be greater than 0",fieldPath=".rules"
// +kubebuilder:validation:XValidation:rule="!(has(self.scaleTargetRef.apiVersion) && self.scaleTargetRef.apiVersion == 'autoscaling.karmada.io/v1alpha1') || self.rules.all(r, !has(r.targetMinReplicas) || !has(r.targetMaxReplicas) || r.targetMinReplicas <= r.targetMaxReplicas)",message="targetMinReplicas must not be greater than targetMaxReplicas",fieldPath=".rules"
// +kubebuilder:validation:XValidation:rule="(has(self.scaleTargetRef.apiVersion) && self.scaleTargetRef.apiVersion == 'autoscaling.karmada.io/v1alpha1') || self.rules.all(r, has(r.targetReplicas) && r.targetReplicas >= 0)",message="a workload is scaled to a number of replicas: give targetReplicas, 0 or more",reason=FieldValueRequired,fieldPath=".rules"
type CronFederatedHPASpec struct {
	// ScaleTargetRef is the target to scale, in the namespace of this object: a
	// workload with a scale subresource, or a FederatedHPA of
	// autoscaling.karmada.io/v1alpha1, whose bounds are then changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="size(self.kind) > 0 && size(self.name) > 0",message="the target is found by kind and name"
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// Rules are the times and the sizes to set. Each rule runs independently.
	// The order of rules that fire at the same moment is not defined.
	// +required
	// +kubebuilder:validation:XValidation:rule="[0,1,2,3,4,5,6,7].all(i, i >= size(self) || ![0,1,2,3,4,5,6,7].exists(j, j > i && j < size(self) && self[j].name == self[i].name))",message="every name of a rule is there once",reason=FieldValueDuplicate
	Rules []CronFederatedHPARule `json:"rules"`
}

// CronFederatedHPARule sets a size at recurring times.
type CronFederatedHPARule struct {
	// Name identifies the rule among the rules of the object. 1 to 32
	// characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// Schedule is a cron expression of five fields: minute, hour, day of month,
	// month, day of week. "0 8 * * 1-5" is 8 o'clock from Monday to Friday.
	// +required
	Schedule string `json:"schedule"`

	// TargetReplicas is the number of replicas to set, 0 or more. Required for
	// a workload, ignored for a FederatedHPA.
	// +optional
	TargetReplicas *int32 `json:"targetReplicas,omitempty"`

	// TargetMinReplicas is the minReplicas to set in a FederatedHPA, above 0.
	// Unset leaves it unchanged. At least one of targetMinReplicas and
	// targetMaxReplicas is needed for a FederatedHPA.
	// +optional
	TargetMinReplicas *int32 `json:"targetMinReplicas,omitempty"`

	// TargetMaxReplicas is the maxReplicas to set in a FederatedHPA, above 0
	// and not below targetMinReplicas. Unset leaves it unchanged.
	// +optional
	TargetMaxReplicas *int32 `json:"targetMaxReplicas,omitempty"`

	// Suspend stops the rule as long as it is true. Runs that are due in that
	// time are skipped. Defaults to false.
	// +optional
	// +kubebuilder:default=false
	Suspend *bool `json:"suspend,omitempty"`

	// TimeZone is the IANA name, such as "Europe/Berlin", of the time zone of
	// the schedule. Unset means the time zone of the controller's process.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// SuccessfulHistoryLimit is the number of successful runs that the status
	// keeps, 1 to 32. Defaults to 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	SuccessfulHistoryLimit *int32 `json:"successfulHistoryLimit,omitempty"`

	// FailedHistoryLimit is the number of failed runs that the status keeps, 0
	// to 32. Defaults to 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`
}

// CronFederatedHPAStatus holds the results of the last runs of each rule.
type CronFederatedHPAStatus struct {
	// ExecutionHistories holds one entry for each rule of the spec.
	// +optional
	ExecutionHistories []ExecutionHistory `json:"executionHistories,omitempty"`
}

// ExecutionHistory holds the past runs and the next run of one rule.
type ExecutionHistory struct {
	// RuleName is the name of the rule.
	// +required
	RuleName string `json:"ruleName"`

	// NextExecutionTime is the time of the next run. It is unset while the rule
	// is suspended.
	// +optional
	NextExecutionTime *metav1.Time `json:"nextExecutionTime,omitempty"`

	// SuccessfulExecutions are the last successful runs, the newest first. A
	// run without a change is successful.
	// +optional
	SuccessfulExecutions []SuccessfulExecution `json:"successfulExecutions,omitempty"`

	// FailedExecutions are the last failed runs, the newest first.
	// +optional
	FailedExecutions []FailedExecution `json:"failedExecutions,omitempty"`
}

// SuccessfulExecution is a run that set its size.
type SuccessfulExecution struct {
	// ScheduleTime is the time at which the run was due.
	// +required
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is the time at which the run took place.
	// +required
	ExecutionTime *metav1.Time `json:"executionTime"`

	// AppliedReplicas is the number of replicas that was set in a workload.
	// +optional
	AppliedReplicas *int32 `json:"appliedReplicas,omitempty"`

	// AppliedMaxReplicas is the maxReplicas that was set in a FederatedHPA.
	// +optional
	AppliedMaxReplicas *int32 `json:"appliedMaxReplicas,omitempty"`

	// AppliedMinReplicas is the minReplicas that was set in a FederatedHPA.
	// +optional
	AppliedMinReplicas *int32 `json:"appliedMinReplicas,omitempty"`
}

// FailedExecution is a run that could not set its size.
type FailedExecution struct {
	// ScheduleTime is the time at which the run was due.
	// +required
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is the time at which the run took place.
	// +required
	ExecutionTime *metav1.Time `json:"executionTime"`

	// Message is the error, for humans.
	// +required
	Message string `json:"message"`
}

// CronFederatedHPAList is a list of scheduled scalers.
//
// +kubebuilder:object:root=true
type CronFederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the scheduled scalers.
	Items []CronFederatedHPA `json:"items"`
}
