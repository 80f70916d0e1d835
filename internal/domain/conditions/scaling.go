package conditions

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
)

// scalingRows returns the conditions of FederatedHPAs. Their type is Kubernetes'
// HorizontalPodAutoscalerCondition, which has no observedGeneration.
func scalingRows() []Row {
	kinds := []string{autoscalingv1alpha1.FederatedHPAKind}
	able, active, limited := string(autoscalingv2.AbleToScale), string(autoscalingv2.ScalingActive), string(autoscalingv2.ScalingLimited)
	return []Row{
		{kinds, able, yes, autoscalingv1alpha1.ReasonSucceededGetScale, "the current replicas are known"},
		{kinds, able, yes, autoscalingv1alpha1.ReasonSucceededRescale, "the target was scaled"},
		{kinds, able, yes, autoscalingv1alpha1.ReasonReadyForNewScale, "the recommendation can be applied"},
		{kinds, able, yes, autoscalingv1alpha1.ReasonScaleDownStabilized, "a recent higher recommendation still applies"},
		{kinds, able, yes, autoscalingv1alpha1.ReasonScaleUpStabilized, "a recent lower recommendation still applies"},
		{kinds, able, no, autoscalingv1alpha1.ReasonFailedGetScale, "the current replicas are unknown"},
		{kinds, able, no, autoscalingv1alpha1.ReasonFailedGetScaleTargetRef, "the target cannot be read"},
		{kinds, able, no, autoscalingv1alpha1.ReasonFailedGetBinding, "the target has no binding"},
		{kinds, able, no, autoscalingv1alpha1.ReasonFailedGetTargetClusters, "the target is in no cluster"},
		{kinds, able, no, autoscalingv1alpha1.ReasonFailedUpdateScale, "the target could not be scaled"},
		{kinds, active, yes, autoscalingv1alpha1.ReasonValidMetricFound, "a metric gave a recommendation"},
		{kinds, active, no, autoscalingv1alpha1.ReasonScalingDisabled, "the target has 0 replicas"},
		{kinds, active, no, autoscalingv1alpha1.ReasonInvalidSelector, "the selector of the target cannot be used"},
		{kinds, active, no, autoscalingv1alpha1.ReasonAmbiguousSelector, "another autoscaler selects the same pods"},
		{kinds, active, no, autoscalingv1alpha1.ReasonInvalidMetricSourceType, "the type of a metric is unknown"},
		{kinds, active, no, autoscalingv1alpha1.ReasonFailedGetObjectMetric, "an object metric could not be read"},
		{kinds, active, no, autoscalingv1alpha1.ReasonFailedGetPodsMetric, "a pods metric could not be read"},
		{kinds, active, no, autoscalingv1alpha1.ReasonFailedGetResourceMetric, "a resource metric could not be read"},
		{kinds, active, no, autoscalingv1alpha1.ReasonFailedGetContainerResourceMetric, "a container's resource metric could not be read"},
		{kinds, limited, no, autoscalingv1alpha1.ReasonDesiredWithinRange, "the recommendation is applied"},
		{kinds, limited, yes, autoscalingv1alpha1.ReasonTooFewReplicas, "minReplicas is higher than the recommendation"},
		{kinds, limited, yes, autoscalingv1alpha1.ReasonTooManyReplicas, "maxReplicas is lower than the recommendation"},
		{kinds, limited, yes, autoscalingv1alpha1.ReasonScaleUpLimit, "behavior.scaleUp slows the change"},
		{kinds, limited, yes, autoscalingv1alpha1.ReasonScaleDownLimit, "behavior.scaleDown slows the change"},
	}
}
