package pull

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/registration/clusterclient"
)

const (
	// logTailLines and logTailBytes limit how much of a log a message contains. describeTimeout limits
	// the time for determining a failure's reason.
	logTailLines    = 5
	logTailBytes    = 2048
	describeTimeout = 5 * time.Second
)

// awaitRollout waits until the agent is ready. If it is not ready in time, the returned error contains
// the reason.
func (r Register) awaitRollout(ctx context.Context, member *clusterclient.Client) error {
	waiting, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	var loggedState string
	pace := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	err := pace.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		have, err := member.Get(ctx, r.agentDeployment())
		if err != nil {
			return false, onlyDenied(err)
		}
		if have == nil {
			return false, fmt.Errorf("%s in %s was deleted during the registration", member.Describe(r.agentDeployment()), member.Name)
		}
		deployment := have.(*appsv1.Deployment)
		if state := formatProgress(deployment); state != loggedState {
			loggedState = state
			r.logf("[karmada-agent-start] Waiting for %s: %s", member.Describe(deployment), state)
		}
		return isRolledOut(deployment), nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return member.WrapError("waiting for", r.agentDeployment(), context.Cause(ctx))
	case !wait.Interrupted(err):
		return err
	}
	return fmt.Errorf("the agent of %s is not ready after %s (%s)%s", member.Name, r.Timeout, loggedState, r.describeFailure(ctx, member))
}

func formatProgress(deployment *appsv1.Deployment) string {
	return fmt.Sprintf("%d of %d replicas available", deployment.Status.AvailableReplicas, desiredReplicas(deployment))
}

func desiredReplicas(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1
	}
	return *deployment.Spec.Replicas
}

// isRolledOut reports whether all desired replicas are available and use the current Pod template.
func isRolledOut(deployment *appsv1.Deployment) bool {
	status, want := deployment.Status, desiredReplicas(deployment)
	return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want &&
		status.Replicas == want && status.AvailableReplicas == want
}

// describeFailure returns why the agent is not ready: the statuses of the Deployment and its Pods, and
// the ends of the Pods' logs.
func (r Register) describeFailure(ctx context.Context, member *clusterclient.Client) string {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	pods := &corev1.PodList{}
	if err := member.API.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels(agentLabels())); err != nil {
		return "; its Pods could not be read: " + err.Error()
	}
	if len(pods.Items) == 0 {
		if have, err := member.Get(ctx, r.agentDeployment()); err == nil && have != nil {
			if failure := replicaFailure(have.(*appsv1.Deployment)); failure != "" {
				return "; no Pod could be created: " + failure
			}
		}
		return fmt.Sprintf("; no controller creates its Pods: check that kube-controller-manager of %s is running", member.Name)
	}
	var text strings.Builder
	for i := range pods.Items {
		pod := &pods.Items[i]
		reason, isRestarted := podFailure(pod)
		if reason == "" {
			continue
		}
		fmt.Fprintf(&text, "\n%s: %s", member.Describe(pod), reason)
		if tail := r.logTail(ctx, pod.Name, isRestarted); tail != "" {
			fmt.Fprintf(&text, "; the end of its log:\n\t%s", strings.ReplaceAll(tail, "\n", "\n\t"))
		}
	}
	return text.String()
}

func replicaFailure(deployment *appsv1.Deployment) string {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}

// podFailure returns why a Pod is not ready, and reports whether its container has restarted. The
// reason is empty if the Pod is ready.
func podFailure(pod *corev1.Pod) (reason string, isRestarted bool) {
	for _, status := range pod.Status.ContainerStatuses {
		switch ended := status.LastTerminationState.Terminated; {
		case status.State.Waiting != nil && ended != nil:
			return fmt.Sprintf("%s, after it ended with code %d: %s", joinReason(status.State.Waiting.Reason, status.State.Waiting.Message),
				ended.ExitCode, joinReason(ended.Reason, ended.Message)), true
		case status.State.Waiting != nil:
			return joinReason(status.State.Waiting.Reason, status.State.Waiting.Message), false
		case status.State.Terminated != nil:
			return fmt.Sprintf("ended with code %d: %s", status.State.Terminated.ExitCode,
				joinReason(status.State.Terminated.Reason, status.State.Terminated.Message)), false
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && (condition.Type == corev1.PodScheduled || condition.Type == corev1.PodReady) &&
			condition.Message != "" {
			return joinReason(condition.Reason, condition.Message), false
		}
	}
	if pod.Status.Phase != corev1.PodRunning {
		return "phase " + string(pod.Status.Phase), false
	}
	return "", false
}

func joinReason(reason, message string) string {
	return strings.Trim(reason+": "+strings.TrimSpace(message), ": ")
}

// logTail returns the end of a Pod's log. It returns an empty string if the log cannot be read in time.
func (r Register) logTail(ctx context.Context, pod string, previous bool) string {
	api, err := corev1client.NewForConfig(rest.CopyConfig(r.Member))
	if err != nil {
		return ""
	}
	lines, size := int64(logTailLines), int64(logTailBytes)
	log, err := api.Pods(r.Namespace).GetLogs(pod, &corev1.PodLogOptions{TailLines: &lines, LimitBytes: &size, Previous: previous}).Stream(ctx)
	if err != nil {
		return ""
	}
	defer func() { _ = log.Close() }()
	content, err := io.ReadAll(io.LimitReader(log, logTailBytes))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
