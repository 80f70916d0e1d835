package processnode

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/standalone/processnode/layout"
)

// hostAddress is the address of the machine, as Pods and the API server see it.
const hostAddress = "127.0.0.1"

// facts are what a Pod's status is made of.
type facts struct {
	inits, containers []corev1.ContainerStatus
	address           string
	// over tells that nothing of the Pod is started again.
	over bool
	now  time.Time
}

// statusOf is the status of a Pod. Times of conditions change only with them.
func statusOf(pod *corev1.Pod, f facts) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase:                 phaseOf(pod.Spec.RestartPolicy, f),
		ObservedGeneration:    pod.Generation,
		Message:               pod.Status.Message,
		Reason:                pod.Status.Reason,
		HostIP:                hostAddress,
		HostIPs:               []corev1.HostIP{{IP: hostAddress}},
		PodIP:                 f.address,
		PodIPs:                []corev1.PodIP{{IP: f.address}},
		StartTime:             pod.Status.StartTime,
		InitContainerStatuses: f.inits,
		ContainerStatuses:     f.containers,
	}
	if finished(pod) {
		status.Phase = pod.Status.Phase
	}
	if status.StartTime == nil {
		start := metav1.NewTime(f.now)
		status.StartTime = &start
	}
	for _, condition := range conditionsOf(pod, f, status.Phase) {
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

func phaseOf(policy corev1.RestartPolicy, f facts) corev1.PodPhase {
	initialized := true
	for i := range f.inits {
		end := f.inits[i].State.Terminated
		if end != nil && end.ExitCode != 0 && (f.over || !again(policy, true, end.ExitCode)) {
			return corev1.PodFailed
		}
		initialized = initialized && end != nil && end.ExitCode == 0
	}
	if !initialized {
		return corev1.PodPending
	}
	var begun, settled, failed int
	for i := range f.containers {
		state := f.containers[i].State
		if state.Running != nil || state.Terminated != nil || f.containers[i].LastTerminationState.Terminated != nil {
			begun++
		}
		if end := state.Terminated; end != nil && (f.over || !again(policy, false, end.ExitCode)) {
			settled++
			if end.ExitCode != 0 {
				failed++
			}
		}
	}
	switch {
	case settled == len(f.containers) && failed > 0:
		return corev1.PodFailed
	case settled == len(f.containers):
		return corev1.PodSucceeded
	case begun > 0:
		return corev1.PodRunning
	default:
		return corev1.PodPending
	}
}

func conditionsOf(pod *corev1.Pod, f facts, phase corev1.PodPhase) []corev1.PodCondition {
	var incomplete, unready []string
	for i := range f.inits {
		if end := f.inits[i].State.Terminated; end == nil || end.ExitCode != 0 {
			incomplete = append(incomplete, f.inits[i].Name)
		}
	}
	for i := range f.containers {
		if !f.containers[i].Ready {
			unready = append(unready, f.containers[i].Name)
		}
	}
	completed := phase == corev1.PodSucceeded
	initialized := condition(corev1.PodInitialized, completed, "ContainersNotInitialized", "containers with incomplete status", incomplete)
	containers := condition(corev1.ContainersReady, false, "ContainersNotReady", "containers with unready status", unready)
	if completed {
		containers.Status, containers.Reason, containers.Message = corev1.ConditionFalse, "PodCompleted", ""
	}
	ready := containers
	ready.Type = corev1.PodReady
	if gates := unmet(pod); ready.Status == corev1.ConditionTrue && len(gates) > 0 {
		ready = condition(corev1.PodReady, false, "ReadinessGatesNotReady", "readiness gates that are not met", gates)
	}
	return []corev1.PodCondition{initialized, ready, containers}
}

// condition is true when nothing is amiss, or all the same.
func condition(kind corev1.PodConditionType, always bool, reason, message string, amiss []string) corev1.PodCondition {
	if always || len(amiss) == 0 {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason,
		Message: fmt.Sprintf("%s: [%s]", message, strings.Join(amiss, " ")),
	}
}

func unmet(pod *corev1.Pod) []string {
	var gates []string
	for _, gate := range pod.Spec.ReadinessGates {
		met := false
		for _, c := range pod.Status.Conditions {
			met = met || c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}
		if !met {
			gates = append(gates, string(gate.ConditionType))
		}
	}
	return gates
}

// unsupported names what a Pod asks for and this node cannot do, nil if it can all.
func unsupported(spec *corev1.PodSpec) error {
	for i := range spec.Volumes {
		if err := layout.CheckVolume(&spec.Volumes[i]); err != nil {
			return err
		}
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil {
			return fmt.Errorf("init container %q: restartPolicy: %w: make it one of the containers", c.Name, layout.ErrUnsupported)
		}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if c.Lifecycle != nil {
			return fmt.Errorf("container %q: lifecycle: %w: leave it out", c.Name, layout.ErrUnsupported)
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe != nil && probe.GRPC != nil {
				return fmt.Errorf("container %q: grpc probe: %w: use httpGet or tcpSocket", c.Name, layout.ErrUnsupported)
			}
			if host := probedHost(probe); host != "" {
				return fmt.Errorf("container %q: probe of host %q: %w: leave the host out, which probes the Pod", c.Name, host, layout.ErrUnsupported)
			}
		}
	}
	return nil
}

// probedHost returns the host that a probe names, empty if it asks its Pod.
func probedHost(probe *corev1.Probe) string {
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
