// Package podfailure answers: what keeps the Pods of a workload from running?
//
// The status of a workload counts its Pods and does not say why some are missing.
// Invariants: the answer is the same for the same Pods in any order, is bounded,
// and holds nothing that changes by itself: no times, no names of Pods, no delays
// of retries. A change of it is a write.
package podfailure

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/domain/conditions"
)

// Reasons that stand for several ones of a kubelet.
const (
	// ImagePullBackOff stands for all reasons between which a Pod alternates that
	// cannot get an image.
	ImagePullBackOff = "ImagePullBackOff"
	crashLoopBackOff = "CrashLoopBackOff"
)

// messageBytes bounds what is said of one workload.
const messageBytes = 256

// Failure is why Pods of a workload do not run.
type Failure struct {
	Reason, Message string
}

// Of returns the failure that most of the Pods share. ok is false when no Pod
// fails: Pods that are being created are no failure, nor are those that go.
func Of(pods []corev1.Pod) (failure Failure, ok bool) {
	counts := map[Failure]int{}
	for i := range pods {
		if each, failed := of(&pods[i]); failed {
			counts[each]++
		}
	}
	for each, number := range counts {
		if !ok || cmp.Or(number-counts[failure], -cmp.Compare(each.Reason, failure.Reason), -cmp.Compare(each.Message, failure.Message)) > 0 {
			failure, ok = each, true
		}
	}
	return failure, ok
}

func of(pod *corev1.Pod) (Failure, bool) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded {
		return Failure{}, false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return failureOf(condition.Reason, condition.Message), true
		}
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if failure, failed := inContainer(pod, &container); failed {
			return failure, true
		}
	}
	return Failure{}, false
}

func failureOf(reason, message string) Failure {
	return Failure{Reason: reason, Message: conditions.Shorten(message, messageBytes)}
}

// inContainer reads why a container waits. A waiting container without a failure is
// being created.
func inContainer(pod *corev1.Pod, status *corev1.ContainerStatus) (Failure, bool) {
	waiting := status.State.Waiting
	if waiting == nil {
		return Failure{}, false
	}
	switch waiting.Reason {
	case "", "ContainerCreating", "PodInitializing":
		return Failure{}, false
	case "ErrImagePull", ImagePullBackOff, "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable":
		return failureOf(ImagePullBackOff, fmt.Sprintf("container %s cannot get image %s", status.Name, imageOf(pod, status))), true
	case crashLoopBackOff:
		return failureOf(crashLoopBackOff, fmt.Sprintf("container %s does not stay up%s", status.Name, lastEnd(status))), true
	default:
		return failureOf(waiting.Reason, fmt.Sprintf("container %s: %s", status.Name, waiting.Message)), true
	}
}

// imageOf is the image as the Pod asks for it; the status may name another one.
func imageOf(pod *corev1.Pod, status *corev1.ContainerStatus) string {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if container.Name == status.Name {
			return container.Image
		}
	}
	return status.Image
}

func lastEnd(status *corev1.ContainerStatus) string {
	last := status.LastTerminationState.Terminated
	if last == nil {
		return ""
	}
	return fmt.Sprintf(": %s, exit code %d", cmp.Or(last.Reason, "Error"), last.ExitCode)
}
