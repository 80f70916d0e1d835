package v1alpha1

// The kinds of this group.
const (
	// FederatedHPAKind is the kind of the metric-driven autoscaler.
	FederatedHPAKind = "FederatedHPA"
	// CronFederatedHPAKind is the kind of the clock-driven scaler.
	CronFederatedHPAKind = "CronFederatedHPA"
)

// Reasons of the condition AbleToScale of a FederatedHPA. The conditions
// themselves have the types of HorizontalPodAutoscaler.
const (
	// ReasonSucceededGetScale means that the size of the target is known.
	ReasonSucceededGetScale = "SucceededGetScale"
	// ReasonSucceededRescale means that the size was changed.
	ReasonSucceededRescale = "SucceededRescale"
	// ReasonReadyForNewScale means that the recommended size was not modified.
	ReasonReadyForNewScale = "ReadyForNewScale"
	// ReasonScaleDownStabilized means that an earlier, larger recommendation
	// prevents scaling down.
	ReasonScaleDownStabilized = "ScaleDownStabilized"
	// ReasonScaleUpStabilized means that an earlier, smaller recommendation
	// prevents scaling up.
	ReasonScaleUpStabilized = "ScaleUpStabilized"
	// ReasonFailedGetScale means that the size of the target cannot be read.
	ReasonFailedGetScale = "FailedGetScale"
	// ReasonFailedGetScaleTargetRef means that the target cannot be read.
	ReasonFailedGetScaleTargetRef = "FailedGetScaleTargetRef"
	// ReasonFailedGetBinding means that the target has no binding.
	ReasonFailedGetBinding = "FailedGetBinding"
	// ReasonFailedGetTargetClusters means that no cluster runs the target.
	ReasonFailedGetTargetClusters = "FailedGetTargetClusters"
	// ReasonFailedUpdateScale means that the new size was rejected.
	ReasonFailedUpdateScale = "FailedUpdateScale"
)

// Reasons of the condition ScalingActive of a FederatedHPA. The reasons that are
// failures are also reasons of events.
const (
	// ReasonValidMetricFound means that a size could be computed.
	ReasonValidMetricFound = "ValidMetricFound"
	// ReasonScalingDisabled means that the target has no replicas.
	ReasonScalingDisabled = "ScalingDisabled"
	// ReasonInvalidSelector means that the target has no usable pod selector.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonAmbiguousSelector means that another autoscaler selects the same pods.
	ReasonAmbiguousSelector = "AmbiguousSelector"
	// ReasonInvalidMetricSourceType means that the type of a metric is not supported.
	ReasonInvalidMetricSourceType = "InvalidMetricSourceType"
	// ReasonFailedGetObjectMetric means that a metric of an object is missing.
	ReasonFailedGetObjectMetric = "FailedGetObjectMetric"
	// ReasonFailedGetPodsMetric means that a metric of pods is missing.
	ReasonFailedGetPodsMetric = "FailedGetPodsMetric"
	// ReasonFailedGetResourceMetric means that the use of a resource is unknown.
	ReasonFailedGetResourceMetric = "FailedGetResourceMetric"
	// ReasonFailedGetContainerResourceMetric means that the use of a resource by
	// a container is unknown.
	ReasonFailedGetContainerResourceMetric = "FailedGetContainerResourceMetric"
)

// Reasons of the condition ScalingLimited of a FederatedHPA.
const (
	// ReasonDesiredWithinRange means that no bound limited the size.
	ReasonDesiredWithinRange = "DesiredWithinRange"
	// ReasonTooFewReplicas means that minReplicas limited the size.
	ReasonTooFewReplicas = "TooFewReplicas"
	// ReasonTooManyReplicas means that maxReplicas limited the size.
	ReasonTooManyReplicas = "TooManyReplicas"
	// ReasonScaleUpLimit means that the rate of scaling up limited the size.
	ReasonScaleUpLimit = "ScaleUpLimit"
	// ReasonScaleDownLimit means that the rate of scaling down limited the size.
	ReasonScaleDownLimit = "ScaleDownLimit"
)

// Reasons of the events on a FederatedHPA, in addition to the failures above.
// SuccessfulRescale is of type Normal, the others are of type Warning.
const (
	EventReasonSuccessfulRescale            = "SuccessfulRescale"
	EventReasonFailedRescale                = "FailedRescale"
	EventReasonFailedGetBindings            = "FailedGetBindings"
	EventReasonFailedComputeMetricsReplicas = "FailedComputeMetricsReplicas"
	EventReasonSelectorRequired             = "SelectorRequired"
	EventReasonFailedUpdateStatus           = "FailedUpdateStatus"
)

// Reasons of the events on a CronFederatedHPA, all of type Warning.
const (
	EventReasonStartRuleFailed              = "StartRuleFailed"
	EventReasonScaleFailed                  = "ScaleFailed"
	EventReasonUpdateStatusFailed           = "UpdateStatusFailed"
	EventReasonUpdateCronFederatedHPAFailed = "UpdateCronFederatedHPAFailed"
)
