package builtin

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func horizontalPodAutoscaler() interpreter.Rules {
	return interpreter.Rules{
		AggregateStatus: aggregateAutoscaler,
		ReflectStatus:   reflectFields("currentReplicas", "desiredReplicas"),
	}
}

// memberAutoscaler holds the fields of an HPA's status that are summed.
type memberAutoscaler struct {
	CurrentReplicas int32 `json:"currentReplicas"`
	DesiredReplicas int32 `json:"desiredReplicas"`
}

func aggregateAutoscaler(
	_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	old, err := typed[autoscalingv2.HorizontalPodAutoscalerStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	var status autoscalingv2.HorizontalPodAutoscalerStatus
	err = forEachStatus(items, func(_ string, reported *memberAutoscaler) {
		status.CurrentReplicas = addInt32(status.CurrentReplicas, reported.CurrentReplicas)
		status.DesiredReplicas = addInt32(status.DesiredReplicas, reported.DesiredReplicas)
	})
	if err != nil {
		return nil, err
	}
	return replaceStatus(template, &old, &status)
}
