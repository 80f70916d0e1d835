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

	"karmada.io/karmada/internal/registration/side"
)

const (
	// hintLines and hintBytes bound how much of a log is told, hintTimeout how long
	// it may take to come.
	hintLines   = 5
	hintBytes   = 2048
	hintTimeout = 5 * time.Second
)

// awaitRollout waits until the agent is ready. When it is not in time, the error
// says what holds it.
func (r Register) awaitRollout(ctx context.Context, member *side.Side) error {
	waiting, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	var told string
	pace := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	err := pace.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		have, err := member.Get(ctx, r.deployment())
		if err != nil {
			return false, onlyRefused(err)
		}
		if have == nil {
			return false, fmt.Errorf("%s in %s is gone: somebody deleted it", member.Describe(r.deployment()), member.Name)
		}
		deployment := have.(*appsv1.Deployment)
		if state := progress(deployment); state != told {
			told = state
			r.logf("[karmada-agent-start] Waiting for %s: %s", member.Describe(deployment), state)
		}
		return rolledOut(deployment), nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return member.Explain("waiting for", r.deployment(), context.Cause(ctx))
	case !wait.Interrupted(err):
		return err
	}
	return fmt.Errorf("the agent of %s is not ready after %s (%s)%s", member.Name, r.Timeout, told, r.hint(ctx, member))
}

func progress(deployment *appsv1.Deployment) string {
	return fmt.Sprintf("%d of %d replicas available", deployment.Status.AvailableReplicas, wanted(deployment))
}

func wanted(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1
	}
	return *deployment.Spec.Replicas
}

// rolledOut tells whether all replicas that are wanted are those of the present
// template and available.
func rolledOut(deployment *appsv1.Deployment) bool {
	status, want := deployment.Status, wanted(deployment)
	return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want &&
		status.Replicas == want && status.AvailableReplicas == want
}

// hint says what holds the agent: what its Deployment or its Pods say, and the end
// of its log.
func (r Register) hint(ctx context.Context, member *side.Side) string {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	pods := &corev1.PodList{}
	if err := member.API.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels(agentLabels())); err != nil {
		return "; its Pods could not be read: " + err.Error()
	}
	if len(pods.Items) == 0 {
		if have, err := member.Get(ctx, r.deployment()); err == nil && have != nil {
			if failure := replicaFailure(have.(*appsv1.Deployment)); failure != "" {
				return "; no Pod could be created: " + failure
			}
		}
		return fmt.Sprintf("; nothing makes Pods for it: see whether kube-controller-manager of %s is running", member.Name)
	}
	var text strings.Builder
	for i := range pods.Items {
		pod := &pods.Items[i]
		reason, restarted := trouble(pod)
		if reason == "" {
			continue
		}
		fmt.Fprintf(&text, "\n%s: %s", member.Describe(pod), reason)
		if tail := r.tail(ctx, pod.Name, restarted); tail != "" {
			fmt.Fprintf(&text, "; the end of its log:\n%s", indent(tail))
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

// trouble is why a Pod is not ready, nothing if it is, and whether it was started
// more than once.
func trouble(pod *corev1.Pod) (reason string, restarted bool) {
	for _, status := range pod.Status.ContainerStatuses {
		switch ended := status.LastTerminationState.Terminated; {
		case status.State.Waiting != nil && ended != nil:
			return fmt.Sprintf("%s, after it ended with code %d: %s", said(status.State.Waiting.Reason, status.State.Waiting.Message), ended.ExitCode, said(ended.Reason, ended.Message)), true
		case status.State.Waiting != nil:
			return said(status.State.Waiting.Reason, status.State.Waiting.Message), false
		case status.State.Terminated != nil:
			return fmt.Sprintf("ended with code %d: %s", status.State.Terminated.ExitCode, said(status.State.Terminated.Reason, status.State.Terminated.Message)), false
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && (condition.Type == corev1.PodScheduled || condition.Type == corev1.PodReady) && condition.Message != "" {
			return said(condition.Reason, condition.Message), false
		}
	}
	if pod.Status.Phase != corev1.PodRunning {
		return "it is " + string(pod.Status.Phase), false
	}
	return "", false
}

func said(reason, message string) string {
	return strings.Trim(reason+": "+strings.TrimSpace(message), ": ")
}

// tail is the end of the log of a Pod, nothing if it does not come in time.
func (r Register) tail(ctx context.Context, pod string, previous bool) string {
	api, err := corev1client.NewForConfig(rest.CopyConfig(r.Member))
	if err != nil {
		return ""
	}
	lines, size := int64(hintLines), int64(hintBytes)
	log, err := api.Pods(r.Namespace).GetLogs(pod, &corev1.PodLogOptions{TailLines: &lines, LimitBytes: &size, Previous: previous}).Stream(ctx)
	if err != nil {
		return ""
	}
	defer func() { _ = log.Close() }()
	content, err := io.ReadAll(io.LimitReader(log, hintBytes))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

func indent(text string) string { return "\t" + strings.ReplaceAll(text, "\n", "\n\t") }
