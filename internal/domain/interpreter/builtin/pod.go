package builtin

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func pod(pods podReader) interpreter.Rules {
	return interpreter.Rules{
		Replicas:        pods.podReplicas,
		Retain:          retainPod,
		AggregateStatus: aggregatePod,
		IsHealthy:       isPodHealthy,
		Dependencies:    podDependencies(), // a Pod has metadata and spec, like a pod template
	}
}

// podReplicas returns 1 and the Pod's requirements.
func (p podReader) podReplicas(_ context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	spec, err := typed[corev1.PodSpec](template.Object, "spec")
	if err != nil {
		return 0, nil, err
	}
	return 1, p.requirements(&corev1.PodTemplateSpec{Spec: spec}), nil
}

// memberPod holds the fields of a Pod's status that are aggregated.
type memberPod struct {
	Phase                 corev1.PodPhase   `json:"phase"`
	ContainerStatuses     []memberContainer `json:"containerStatuses"`
	InitContainerStatuses []memberContainer `json:"initContainerStatuses"`
}

type memberContainer struct {
	Ready bool                  `json:"ready"`
	State corev1.ContainerState `json:"state"`
}

// aggregatePod aggregates the most severe phase and the containers of all clusters. A template that is
// in no cluster keeps its status. If a terminated container was restarted, the update takes two steps,
// of which the first one empties the lists of containers (see hasRestart).
func aggregatePod(
	_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	if len(items) == 0 {
		return template, nil
	}
	old, err := typed[corev1.PodStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	status := corev1.PodStatus{
		// The API server restores these two fields if they are omitted, so every aggregation would
		// find a difference.
		QOSClass: old.QOSClass, ObservedGeneration: old.ObservedGeneration,
	}
	phases := map[corev1.PodPhase]bool{}
	for i := range items {
		reported, found, err := memberStatus[memberPod](&items[i])
		if err != nil {
			return nil, err
		}
		if !found {
			phases[corev1.PodPending] = true
			continue
		}
		phases[reported.Phase] = true
		status.ContainerStatuses = appendContainers(status.ContainerStatuses, reported.ContainerStatuses)
		status.InitContainerStatuses = appendContainers(status.InitContainerStatuses, reported.InitContainerStatuses)
	}
	status.Phase = firstOf(phases, corev1.PodFailed, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded)
	if !equality.Semantic.DeepEqual(&old, &status) && (hasRestart(old.ContainerStatuses, status.ContainerStatuses) ||
		hasRestart(old.InitContainerStatuses, status.InitContainerStatuses)) {
		status.ContainerStatuses, status.InitContainerStatuses = nil, nil
	}
	return replaceStatus(template, &old, &status)
}

// hasRestart reports whether the API server would reject an update from the old to the new container
// statuses, because a terminated container seems to be restarted although the restart policy does not
// allow it. Aggregated container statuses have no names, so the API server cannot match the containers.
// An update to an empty list in between avoids the rejection.
func hasRestart(old, statuses []corev1.ContainerStatus) bool {
	terminated := func(s corev1.ContainerStatus) bool { return s.State.Terminated != nil }
	return slices.ContainsFunc(old, terminated) &&
		slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return !terminated(s) })
}

func appendContainers(statuses []corev1.ContainerStatus, reported []memberContainer) []corev1.ContainerStatus {
	for i := range reported {
		statuses = append(statuses, corev1.ContainerStatus{Ready: reported[i].Ready, State: reported[i].State})
	}
	return statuses
}

// firstOf returns the first of the phases in order that occurs, or "" if none does.
func firstOf[P ~string](occurring map[P]bool, order ...P) P {
	for _, phase := range order {
		if occurring[phase] {
			return phase
		}
	}
	return ""
}

// podHealth holds the fields of a Pod's status that determine its health.
type podHealth struct {
	Phase      corev1.PodPhase `json:"phase"`
	Conditions []struct {
		Type   corev1.PodConditionType `json:"type"`
		Status corev1.ConditionStatus  `json:"status"`
	} `json:"conditions"`
}

func isPodHealthy(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	status, err := typed[podHealth](memberObject.Object, "status")
	if err != nil {
		return false, err
	}
	if status.Phase != corev1.PodRunning {
		return status.Phase == corev1.PodSucceeded, nil
	}
	for _, condition := range status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}
