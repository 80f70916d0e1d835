package processnode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func runningStatus(ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "runs", Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func endedStatus(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func waitingStatus(ended bool) corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: "waits", State: waitingState(reasonCrashLoop, "")}
	if ended {
		status.LastTerminationState = endedStatus(1).State
	}
	return status
}

func TestPodPhase(t *testing.T) {
	type statuses = []corev1.ContainerStatus
	tests := map[string]struct {
		policy                     corev1.RestartPolicy
		initContainers, containers statuses
		stopped                    bool
		want                       corev1.PodPhase
	}{
		"no container started":           {corev1.RestartPolicyAlways, nil, statuses{waitingStatus(false)}, false, corev1.PodPending},
		"one of two started":             {corev1.RestartPolicyAlways, nil, statuses{runningStatus(true), waitingStatus(false)}, false, corev1.PodRunning},
		"waiting for a restart":          {corev1.RestartPolicyAlways, nil, statuses{waitingStatus(true)}, false, corev1.PodRunning},
		"ended before a restart":         {corev1.RestartPolicyAlways, nil, statuses{endedStatus(0)}, false, corev1.PodRunning},
		"ended in a deleted Pod":         {corev1.RestartPolicyAlways, nil, statuses{endedStatus(0)}, true, corev1.PodSucceeded},
		"killed in a deleted Pod":        {corev1.RestartPolicyAlways, nil, statuses{endedStatus(137)}, true, corev1.PodFailed},
		"all succeeded":                  {corev1.RestartPolicyOnFailure, nil, statuses{endedStatus(0), endedStatus(0)}, false, corev1.PodSucceeded},
		"one failed and is restarted":    {corev1.RestartPolicyOnFailure, nil, statuses{endedStatus(0), endedStatus(1)}, false, corev1.PodRunning},
		"one failed without restart":     {corev1.RestartPolicyNever, nil, statuses{endedStatus(0), endedStatus(1)}, false, corev1.PodFailed},
		"one failed and one runs":        {corev1.RestartPolicyNever, nil, statuses{endedStatus(1), runningStatus(true)}, false, corev1.PodRunning},
		"an init container runs":         {corev1.RestartPolicyAlways, statuses{runningStatus(false)}, statuses{waitingStatus(false)}, false, corev1.PodPending},
		"an init container failed":       {corev1.RestartPolicyNever, statuses{endedStatus(1)}, statuses{waitingStatus(false)}, false, corev1.PodFailed},
		"an init container is restarted": {corev1.RestartPolicyAlways, statuses{endedStatus(1)}, statuses{waitingStatus(false)}, false, corev1.PodPending},
		"init containers succeeded":      {corev1.RestartPolicyAlways, statuses{endedStatus(0)}, statuses{runningStatus(true)}, false, corev1.PodRunning},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := podPhase(test.policy, podFacts{initContainers: test.initContainers, containers: test.containers, stopped: test.stopped})
			if got != test.want {
				t.Errorf("phase %s, want %s", got, test.want)
			}
		})
	}
}

func TestConditionsKeepTransitionTime(t *testing.T) {
	began, now := metav1.NewTime(time.Unix(1000, 0)), time.Unix(2000, 0)
	pod := &corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/open"}}}}
	pod.Status.StartTime = &began
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: began},
		{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: began},
	}
	status := podStatus(pod, podFacts{containers: []corev1.ContainerStatus{runningStatus(true)}, address: "127.70.1.2", now: now})
	want := []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: began},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now), Reason: "ReadinessGatesNotReady", Message: "readiness gates that are not met: [example.com/open]"},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)},
	}
	if diff := cmp.Diff(want, status.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if !status.StartTime.Equal(&began) {
		t.Errorf("the start time changed to %s", status.StartTime)
	}
}

func TestRestartBackoffDelay(t *testing.T) {
	b := restartBackoff{initial: 10 * time.Second, max: 5 * time.Minute}
	want := map[int]time.Duration{0: 0, 1: 0, 2: 10 * time.Second, 3: 20 * time.Second, 6: 160 * time.Second, 7: 5 * time.Minute, 1000: 5 * time.Minute}
	for failures, delay := range want {
		if got := b.delay(failures); got != delay {
			t.Errorf("the delay after %d ends is %s, want %s", failures, got, delay)
		}
	}
}
