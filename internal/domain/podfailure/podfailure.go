// Package podfailure explains why the Pods of a workload do not run.
//
// The status of a workload counts its Pods, but does not contain the reason for missing Pods.
// Invariants: the result is the same for the same Pods in any order and has a limited size. It
// contains nothing that changes by itself, such as times, names of Pods or retry delays, because
// each change causes a write.
package podfailure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/domain/conditions"
)

// Reasons that summarize several reasons of the kubelet.
const (
	// ImagePullBackOff summarizes all reasons between which a Pod alternates as long as its image
	// cannot be pulled.
	ImagePullBackOff = "ImagePullBackOff"
	crashLoopBackOff = "CrashLoopBackOff"
)

// maxMessageBytes is the maximum length of the message for one workload.
const maxMessageBytes = 256

// Failure is the reason why Pods of a workload do not run.
type Failure struct {
	Reason, Message string
}

// MostCommon returns the failure that more of the failing Pods have than any other failure. ok is
// false if no Pod fails. Pods that are being created or deleted do not count as failing.
func MostCommon(pods []corev1.Pod) (failure Failure, ok bool) {
	counts := map[Failure]int{}
	for i := range pods {
		if each, failed := podFailure(&pods[i]); failed {
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

func podFailure(pod *corev1.Pod) (Failure, bool) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded {
		return Failure{}, false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable {
			return newFailure(condition.Reason, condition.Message), true
		}
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if failure, failed := containerFailure(pod, &container); failed {
			return failure, true
		}
	}
	return Failure{}, false
}

func newFailure(reason, message string) Failure {
	return Failure{Reason: reason, Message: conditions.Truncate(message, maxMessageBytes)}
}

// containerFailure returns the reason why a container waits. It returns false for a container that
// waits because it is being created.
func containerFailure(pod *corev1.Pod, status *corev1.ContainerStatus) (Failure, bool) {
	waiting := status.State.Waiting
	if waiting == nil {
		return Failure{}, false
	}
	switch waiting.Reason {
	case "", "ContainerCreating", "PodInitializing":
		return Failure{}, false
	case "ErrImagePull", ImagePullBackOff, "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable":
		return newFailure(ImagePullBackOff, fmt.Sprintf("container %s cannot get image %s", status.Name, requestedImage(pod, status))), true
	case crashLoopBackOff:
		return newFailure(crashLoopBackOff, fmt.Sprintf("container %s does not stay up%s", status.Name, lastTermination(status))), true
	default:
		return newFailure(waiting.Reason, fmt.Sprintf("container %s: %s", status.Name, waiting.Message)), true
	}
}

// requestedImage returns the image in the spec of the Pod, because the status may contain another
// name of the image.
func requestedImage(pod *corev1.Pod, status *corev1.ContainerStatus) string {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if container.Name == status.Name {
			return container.Image
		}
	}
	return status.Image
}

func lastTermination(status *corev1.ContainerStatus) string {
	last := status.LastTerminationState.Terminated
	if last == nil {
		return ""
	}
	text := fmt.Sprintf(": %s, exit code %d", cmp.Or(last.Reason, "Error"), last.ExitCode)
	if line := lastLine(last.Message); line != "" {
		text += ": " + line
	}
	return text
}

// lastLine returns the last line of a text that is not blank. A program that ends with an error writes
// the error last.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
