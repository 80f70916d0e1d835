package processnode

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/standalone/processnode/layout"
)

// hostAddress is the address of the machine that Pods and the API server use.
const hostAddress = "127.0.0.1"

// podFacts are the inputs of a Pod status.
type podFacts struct {
	initContainers, containers []corev1.ContainerStatus
	address                    string
	// stopped means that no container of the Pod is started again.
	stopped bool
	now     time.Time
}

// podStatus returns a Pod's status. A condition's transition time changes only together with its status.
func podStatus(pod *corev1.Pod, f podFacts) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase:                 podPhase(pod.Spec.RestartPolicy, f),
		ObservedGeneration:    pod.Generation,
		Message:               pod.Status.Message,
		Reason:                pod.Status.Reason,
		HostIP:                hostAddress,
		HostIPs:               []corev1.HostIP{{IP: hostAddress}},
		PodIP:                 f.address,
		PodIPs:                []corev1.PodIP{{IP: f.address}},
		StartTime:             pod.Status.StartTime,
		InitContainerStatuses: f.initContainers,
		ContainerStatuses:     f.containers,
	}
	if isFinished(pod) {
		status.Phase = pod.Status.Phase
	}
	if status.StartTime == nil {
		start := metav1.NewTime(f.now)
		status.StartTime = &start
	}
	for _, condition := range podConditions(pod, f, status.Phase) {
		condition.ObservedGeneration = pod.Generation
		condition.LastTransitionTime = metav1.NewTime(f.now)
		for _, old := range pod.Status.Conditions {
			if old.Type == condition.Type && old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
				break
			}
		}
		status.Conditions = append(status.Conditions, condition)
	}
	return status
}

func podPhase(policy corev1.RestartPolicy, f podFacts) corev1.PodPhase {
	initialized := true
	for i := range f.initContainers {
		end := f.initContainers[i].State.Terminated
		if end != nil && end.ExitCode != 0 && (f.stopped || !shouldRestart(policy, true, end.ExitCode)) {
			return corev1.PodFailed
		}
		initialized = initialized && end != nil && end.ExitCode == 0
	}
	if !initialized {
		return corev1.PodPending
	}
	var started, ended, failed int
	for i := range f.containers {
		state := f.containers[i].State
		if state.Running != nil || state.Terminated != nil || f.containers[i].LastTerminationState.Terminated != nil {
			started++
		}
		if end := state.Terminated; end != nil && (f.stopped || !shouldRestart(policy, false, end.ExitCode)) {
			ended++
			if end.ExitCode != 0 {
				failed++
			}
		}
	}
	switch {
	case ended == len(f.containers) && failed > 0:
		return corev1.PodFailed
	case ended == len(f.containers):
		return corev1.PodSucceeded
	case started > 0:
		return corev1.PodRunning
	default:
		return corev1.PodPending
	}
}

func podConditions(pod *corev1.Pod, f podFacts, phase corev1.PodPhase) []corev1.PodCondition {
	var incomplete, unready []string
	for i := range f.initContainers {
		if end := f.initContainers[i].State.Terminated; end == nil || end.ExitCode != 0 {
			incomplete = append(incomplete, f.initContainers[i].Name)
		}
	}
	for i := range f.containers {
		if !f.containers[i].Ready {
			unready = append(unready, f.containers[i].Name)
		}
	}
	completed := phase == corev1.PodSucceeded
	initialized := newCondition(corev1.PodInitialized, completed, "ContainersNotInitialized", "containers with incomplete status", incomplete)
	containers := newCondition(corev1.ContainersReady, false, "ContainersNotReady", "containers with unready status", unready)
	if completed {
		containers.Status, containers.Reason, containers.Message = corev1.ConditionFalse, "PodCompleted", ""
	}
	ready := containers
	ready.Type = corev1.PodReady
	if gates := unmetReadinessGates(pod); ready.Status == corev1.ConditionTrue && len(gates) > 0 {
		ready = newCondition(corev1.PodReady, false, "ReadinessGatesNotReady", "readiness gates that are not met", gates)
	}
	return []corev1.PodCondition{initialized, ready, containers}
}

// newCondition returns a Pod condition that is true if always is set or names is empty. Otherwise
// the condition is false, and its message lists the names, for example of the containers that are
// not ready.
func newCondition(kind corev1.PodConditionType, always bool, reason, message string, names []string) corev1.PodCondition {
	if always || len(names) == 0 {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason,
		Message: fmt.Sprintf("%s: [%s]", message, strings.Join(names, " ")),
	}
}

func unmetReadinessGates(pod *corev1.Pod) []string {
	var gates []string
	for _, gate := range pod.Spec.ReadinessGates {
		isMet := false
		for _, c := range pod.Status.Conditions {
			isMet = isMet || c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}
		if !isMet {
			gates = append(gates, string(gate.ConditionType))
		}
	}
	return gates
}

// validateSupported returns an error that names a feature of the Pod that this node does not
// support.
func validateSupported(spec *corev1.PodSpec) error {
	for i := range spec.Volumes {
		if err := layout.CheckVolume(&spec.Volumes[i]); err != nil {
			return err
		}
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil {
			return fmt.Errorf("init container %q: restartPolicy: %w: move it to the containers", c.Name, layout.ErrUnsupported)
		}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if c.Lifecycle != nil {
			return fmt.Errorf("container %q: lifecycle: %w: remove it", c.Name, layout.ErrUnsupported)
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe != nil && probe.GRPC != nil {
				return fmt.Errorf("container %q: grpc probe: %w: use httpGet or tcpSocket", c.Name, layout.ErrUnsupported)
			}
			if host := probeHost(probe); host != "" {
				return fmt.Errorf("container %q: probe of host %q: %w: omit the host to probe the Pod", c.Name, host, layout.ErrUnsupported)
			}
		}
	}
	return nil
}

// probeHost returns the host of a probe. The result is empty if the probe connects to its Pod.
func probeHost(probe *corev1.Probe) string {
	switch {
	case probe == nil:
		return ""
	case probe.HTTPGet != nil:
		return probe.HTTPGet.Host
	case probe.TCPSocket != nil:
		return probe.TCPSocket.Host
	default:
		return ""
	}
}
