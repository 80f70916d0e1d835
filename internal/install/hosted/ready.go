package hosted

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/podfailure"
)

const (
	readyPollInterval = 500 * time.Millisecond
	// describeTimeout limits the time for reading why Pods are not ready.
	describeTimeout = 10 * time.Second
)

// NotReadyError means that Pods of a Deployment are not ready in time.
type NotReadyError struct {
	Deployment string
	Timeout    time.Duration
	Reason     string
}

// Error implements error.
func (n *NotReadyError) Error() string {
	return fmt.Sprintf("Deployment %s is not ready after %s: %s", n.Deployment, n.Timeout, n.Reason)
}

// IsRolledOut reports whether all replicas of a Deployment are available and have its current
// template.
func IsRolledOut(deployment *appsv1.Deployment) bool {
	status, want := deployment.Status, int32(1)
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want
}

// AwaitReady waits until a Deployment is rolled out. After the timeout, it returns a NotReadyError
// that names each Pod which is not ready.
func AwaitReady(ctx context.Context, host client.Client, key client.ObjectKey, timeout time.Duration) error {
	deployment := &appsv1.Deployment{}
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, readyPollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		lastErr = host.Get(ctx, key, deployment)
		return lastErr == nil && IsRolledOut(deployment), nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for Deployment %s: %w", key, ctx.Err())
	case deployment.Spec.Selector == nil:
		return fmt.Errorf("reading Deployment %s: %w", key, lastErr)
	}
	return &NotReadyError{Deployment: key.String(), Timeout: timeout, Reason: describePods(ctx, host, deployment)}
}

// describePods returns the reasons why Pods of a Deployment are not ready.
func describePods(ctx context.Context, host client.Client, deployment *appsv1.Deployment) string {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	pods, err := ListPods(ctx, host, deployment.Namespace, deployment.Spec.Selector.MatchLabels)
	if err != nil {
		return err.Error()
	}
	return notReadyReason(deployment, pods)
}

// notReadyReason returns the reasons why the Pods of a Deployment are not ready.
func notReadyReason(deployment *appsv1.Deployment, pods []corev1.Pod) string {
	var reasons []string
	for i := range pods {
		pod := &pods[i]
		if isPodReady(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		reason := fmt.Sprintf("its phase is %s", pod.Status.Phase)
		if failure, ok := podfailure.MostCommon(pods[i : i+1]); ok {
			reason = failure.Reason + ": " + failure.Message
		}
		reasons = append(reasons, fmt.Sprintf("Pod %s: %s", pod.Name, reason))
	}
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			reasons = append(reasons, condition.Message)
		}
	}
	if len(pods) == 0 && len(reasons) == 0 {
		return "it has no Pods: check that kube-controller-manager of the host runs"
	}
	if len(reasons) == 0 {
		return "its Pods are ready, but not available yet"
	}
	return strings.Join(reasons, "; ")
}

func isPodReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ListPods returns the Pods with labels.
func ListPods(ctx context.Context, host client.Client, namespace string, labels map[string]string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := host.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("listing Pods in namespace %s of the host: %w", namespace, err)
	}
	return pods.Items, nil
}
