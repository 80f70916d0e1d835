package processnode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func runs(ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "runs", Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func endedWith(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func waits(ended bool) corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: "waits", State: waiting(reasonCrashLoop, "")}
	if ended {
		status.LastTerminationState = endedWith(1).State
	}
	return status
}

func TestThePhaseFollowsFromTheContainers(t *testing.T) {
	type statuses = []corev1.ContainerStatus
	tests := map[string]struct {
		policy            corev1.RestartPolicy
		inits, containers statuses
		over              bool
		want              corev1.PodPhase
	}{
		"nothing began":                      {corev1.RestartPolicyAlways, nil, statuses{waits(false)}, false, corev1.PodPending},
		"one of two began":                   {corev1.RestartPolicyAlways, nil, statuses{runs(true), waits(false)}, false, corev1.PodRunning},
		"it is about to be started again":    {corev1.RestartPolicyAlways, nil, statuses{waits(true)}, false, corev1.PodRunning},
		"it ended and will be started again": {corev1.RestartPolicyAlways, nil, statuses{endedWith(0)}, false, corev1.PodRunning},
		"it ended and the Pod goes":          {corev1.RestartPolicyAlways, nil, statuses{endedWith(0)}, true, corev1.PodSucceeded},
		"it was killed and the Pod goes":     {corev1.RestartPolicyAlways, nil, statuses{endedWith(137)}, true, corev1.PodFailed},
		"all are done":                       {corev1.RestartPolicyOnFailure, nil, statuses{endedWith(0), endedWith(0)}, false, corev1.PodSucceeded},
		"one failed and is tried again":      {corev1.RestartPolicyOnFailure, nil, statuses{endedWith(0), endedWith(1)}, false, corev1.PodRunning},
		"one failed for good":                {corev1.RestartPolicyNever, nil, statuses{endedWith(0), endedWith(1)}, false, corev1.PodFailed},
		"one failed and one runs":            {corev1.RestartPolicyNever, nil, statuses{endedWith(1), runs(true)}, false, corev1.PodRunning},
		"an init container runs":             {corev1.RestartPolicyAlways, statuses{runs(false)}, statuses{waits(false)}, false, corev1.PodPending},
		"an init container failed":           {corev1.RestartPolicyNever, statuses{endedWith(1)}, statuses{waits(false)}, false, corev1.PodFailed},
		"an init container is tried again":   {corev1.RestartPolicyAlways, statuses{endedWith(1)}, statuses{waits(false)}, false, corev1.PodPending},
		"init containers are done":           {corev1.RestartPolicyAlways, statuses{endedWith(0)}, statuses{runs(true)}, false, corev1.PodRunning},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := phaseOf(test.policy, facts{inits: test.inits, containers: test.containers, over: test.over})
			if got != test.want {
				t.Errorf("phase %s, want %s", got, test.want)
			}
		})
	}
}

func TestConditionsChangeTheirTimeOnlyWithThem(t *testing.T) {
	began, now := metav1.NewTime(time.Unix(1000, 0)), time.Unix(2000, 0)
	pod := &corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/open"}}}}
	pod.Status.StartTime = &began
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: began},
		{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: began},
	}
	status := statusOf(pod, facts{containers: []corev1.ContainerStatus{runs(true)}, address: "127.70.1.2", now: now})
	want := []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: began},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now), Reason: "ReadinessGatesNotReady", Message: "readiness gates that are not met: [example.com/open]"},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)},
	}
	if diff := cmp.Diff(want, status.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if !status.StartTime.Equal(&began) {
		t.Errorf("the start moved to %s", status.StartTime)
	}
}

func TestTheDelayGrowsWithEndsInARow(t *testing.T) {
	b := backoff{first: 10 * time.Second, limit: 5 * time.Minute}
	want := map[int]time.Duration{0: 0, 1: 0, 2: 10 * time.Second, 3: 20 * time.Second, 6: 160 * time.Second, 7: 5 * time.Minute, 1000: 5 * time.Minute}
	for failures, delay := range want {
		if got := b.after(failures); got != delay {
			t.Errorf("after %d ends it waits %s, want %s", failures, got, delay)
		}
	}
}
