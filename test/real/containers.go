package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// process is the process of a container as the kernel sees it.
type process struct {
	pod, program string
	user         int
	// readOnly means that its root file system is mounted read-only.
	readOnly bool
	// privileges are its effective capabilities. filtered means that a seccomp filter is active, and
	// confined that it cannot gain privileges.
	privileges         uint64
	filtered, confined bool
	// resident and proportional are its memory in bytes. The proportional memory counts a page that n
	// processes share as 1/n page.
	resident, proportional int64
}

// nonroot is the user of the image.
const nonroot = 65532

// problems returns what is wrong with a process of a control plane. etcd may be root, because a
// directory of the node belongs to root.
func (p *process) problems() error {
	var problems []error
	report := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("%s in Pod %s "+format, append([]any{p.program, p.pod}, args...)...))
		}
	}
	report(p.user != nonroot && p.program != "etcd", "runs as user %d, not as %d", p.user, nonroot)
	report(!p.readOnly, "can write its root file system")
	report(p.privileges != 0, "has capabilities %#x", p.privileges)
	report(!p.filtered, "has no seccomp filter")
	report(!p.confined, "can gain privileges")
	return errors.Join(problems...)
}

// readProcesses returns the processes of the containers of Pods. proc is the file system /proc.
func readProcesses(proc fs.FS, pods []corev1.Pod) ([]*process, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, fmt.Errorf("listing the processes: %w", err)
	}
	var all []*process
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		// A process that has ended in the meantime is none.
		if found, err := readProcess(proc, entry.Name(), pods); err == nil && found != nil {
			all = append(all, found)
		}
	}
	return all, nil
}

// readProcess returns nil for a process that belongs to none of the Pods, and for the process that holds
// the namespaces of a Pod.
func readProcess(proc fs.FS, id string, pods []corev1.Pod) (*process, error) {
	files := map[string]string{}
	for _, name := range []string{"cgroup", "cmdline", "status", "mountinfo", "smaps_rollup"} {
		data, err := fs.ReadFile(proc, path.Join(id, name))
		if err != nil {
			return nil, err
		}
		files[name] = string(data)
	}
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return strings.Contains(files["cgroup"], "pod"+string(pod.UID)) })
	program, _, _ := strings.Cut(files["cmdline"], "\x00")
	if i < 0 || program == pauseProgram {
		return nil, nil
	}
	status := keyValues(files["status"])
	memory := keyValues(files["smaps_rollup"])
	p := &process{pod: pods[i].Name, program: path.Base(program), readOnly: isRootReadOnly(files["mountinfo"])}
	p.user, _ = strconv.Atoi(firstField(status["Uid"]))
	p.privileges, _ = strconv.ParseUint(firstField(status["CapEff"]), 16, 64)
	p.filtered, p.confined = firstField(status["Seccomp"]) == "2", firstField(status["NoNewPrivs"]) == "1"
	p.resident, p.proportional = kibibytes(memory["Rss"]), kibibytes(memory["Pss"])
	return p, nil
}

// keyValues parses lines of the form "Key: value".
func keyValues(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			values[key] = value
		}
	}
	return values
}

func firstField(text string) string {
	if fields := strings.Fields(text); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

func kibibytes(text string) int64 {
	number, _ := strconv.ParseInt(firstField(text), 10, 64)
	return number * 1024
}

// isRootReadOnly reports whether the mounts of a process have a read-only root. The fifth field of a line
// is the place, and the sixth has the options.
func isRootReadOnly(mounts string) bool {
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 5 && fields[4] == "/" {
			return slices.Contains(strings.Split(fields[5], ","), "ro")
		}
	}
	return false
}

// restarts returns the restarts of containers, by the name of their Pod.
func restarts(pods []corev1.Pod) map[string]int32 {
	counts := map[string]int32{}
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			if status.RestartCount > 0 {
				counts[pods[i].Name] += status.RestartCount
			}
		}
	}
	return counts
}

// listPods returns the Pods of a namespace that are neither finished nor deleted.
func listPods(ctx context.Context, host client.Client, namespace string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := host.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the Pods: %w", err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	}), nil
}
