package install

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/domain/podfailure"
)

// CrashError means that a container crashed twice with the same error.
type CrashError struct {
	Workload string
	// Crash describes the last crash. It begins with the log's last line, which states the cause.
	Crash string
}

// Error implements error.
func (c *CrashError) Error() string {
	return fmt.Sprintf("%s: %s crashed twice with this error", c.Crash, c.Workload)
}

// crashLog holds the last observed crash of each container of a workload.
type crashLog map[string]podfailure.Crash

// findRepeated records the containers' last crashes. It returns a CrashError if a container crashed again
// with the same last log line.
func (c crashLog) findRepeated(workload string, pods []corev1.Pod) error {
	for i := range pods {
		pod := &pods[i]
		for _, status := range containerStatuses(pod) {
			crash, crashed := podfailure.LastCrash(&status)
			if !crashed {
				continue
			}
			key := string(pod.UID) + "/" + status.Name
			if earlier, found := c[key]; found && crash.IsRepeated(earlier) {
				return &CrashError{Workload: workload, Crash: describeCrash(pod, status.Name, crash)}
			}
			c[key] = crash
		}
	}
	return nil
}

func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// describeCrash returns the last log line of a crashed container and the command that prints the whole log.
func describeCrash(pod *corev1.Pod, container string, crash podfailure.Crash) string {
	return fmt.Sprintf("%s (Pod %s, exit code %d; the whole log: kubectl --namespace %s logs %s --container %s --previous)",
		cmp.Or(crash.Line, "the container wrote no log"), pod.Name, crash.ExitCode, pod.Namespace, pod.Name, container)
}

// describeLastCrash describes the Pod's first container that crashed and waits to be restarted. It returns
// an empty string if there is none.
func describeLastCrash(pod *corev1.Pod) string {
	for _, status := range containerStatuses(pod) {
		if crash, crashed := podfailure.LastCrash(&status); crashed && status.State.Running == nil {
			return describeCrash(pod, status.Name, crash)
		}
	}
	return ""
}
