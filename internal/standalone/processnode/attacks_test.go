package processnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"karmada.io/karmada/internal/standalone/processnode/layout"
	"karmada.io/karmada/internal/standalone/processnode/process"
)

// ended waits until a Pod that is not restarted has come to its end.
func ended(pod *corev1.Pod) error {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return fmt.Errorf("it is %s: %+v", pod.Status.Phase, mainStatus(pod).State)
	}
	return nil
}

// TestAProgramReachesNoFilesOfTheMachine runs a program that tries what a user who may
// create Pods can make one of ours try: by its flags, and by a kubeconfig that names
// a command or files.
func TestAProgramReachesNoFilesOfTheMachine(t *testing.T) {
	if !process.Confines() {
		t.Fatal("this kernel has no Landlock: the node must not run programs here")
	}
	home := t.TempDir()
	key, listed := filepath.Join(home, "karmada.key"), filepath.Join(home, "control-plane")
	if err := errors.Join(os.WriteFile(key, []byte("private"), 0o600), os.Mkdir(listed, 0o700)); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, filepath.Join(home, "node"), &corev1.Secret{ObjectMeta: objectMeta("settings"), Data: map[string][]byte{"a": []byte("content")}})
	neighbour := testPod("neighbour", "wait")
	neighbour.Spec.Volumes = []corev1.Volume{secretVolume("settings")}
	neighbour.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/etc/settings"}}
	n.create(t, neighbour)
	n.await(t, "neighbour", "running", running)
	secretOfNeighbour := filepath.Join(home, "node", "pods", "neighbour-uid", "volumes", "v", "a")
	if _, err := os.Stat(secretOfNeighbour); err != nil {
		t.Fatal(err)
	}

	attempts := []string{
		"read", key, "write", key, "remove", key, "list", listed, "link", key,
		"write", filepath.Join(home, "new"), "read", "/etc/passwd", "read", "../../../../../../../../../../etc/passwd",
		"read", "/proc/net/unix", "list", "/proc", "read", secretOfNeighbour, "run", "/bin/sh", "run", "/usr/bin/env",
	}
	pod := testPod("reach", "reach", attempts...)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	n.create(t, pod)
	finished := n.await(t, "reach", "its end", ended)
	if finished.Status.Phase != corev1.PodSucceeded {
		t.Errorf("it reached what it must not:\n%s", n.logs(t, "reach"))
	}
	if data, err := os.ReadFile(key); err != nil || string(data) != "private" {
		t.Errorf("the key is %q (%v)", data, err)
	}
}

func TestAProgramUsesWhatItsPodGivesIt(t *testing.T) {
	n := startNode(t, t.TempDir())
	pod := testPod("write", "reach", "write", "/scratch/file", "write", "own", "write", "/seen/file")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "seen", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}, {Name: "seen", MountPath: "/seen", ReadOnly: true}}
	n.create(t, pod)
	n.await(t, "write", "its end", ended)
	log := n.logs(t, "write")
	for part, want := range map[string]bool{"/volumes/scratch/file\n": true, "reached: write own\n": true, "/volumes/seen/file <nil>": false} {
		if strings.Contains(log, part) != want {
			t.Errorf("%q in the log: want %t\n%s", part, want, log)
		}
	}
}

// TestWhatAPodMustNotHaveIsRefused lists what a user who may create Pods can ask for.
// Nothing of it starts, and the Pod says why.
func TestWhatAPodMustNotHaveIsRefused(t *testing.T) {
	tests := map[string]struct {
		ask          func(pod *corev1.Pod, main *corev1.Container)
		reason, told string
	}{
		"another program of the machine": {func(_ *corev1.Pod, main *corev1.Container) { main.Image = "sh" }, reasonErrImagePull, "no others"},
		"a program that is not listed":   {func(_ *corev1.Pod, main *corev1.Container) { main.Image = "karmada-shell" }, reasonErrImagePull, "no others"},
		"another command": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Command = []string{"/bin/sh", "-c", "id"}
		}, reasonStartError, "there is no other command"},
		"a library to load": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Env = append(main.Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/tmp/evil.so"})
		}, reasonConfigError, "variable LD_PRELOAD"},
		"a library of a ConfigMap": {func(_ *corev1.Pod, main *corev1.Container) {
			main.EnvFrom = []corev1.EnvFromSource{{Prefix: "LD_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "evil"}}}}
		}, reasonConfigError, "variable LD_AUDIT"},
		"a setting of the runtime": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Env = append(main.Env, corev1.EnvVar{Name: "GODEBUG", Value: "x509usefallbackroots=1"})
		}, reasonConfigError, "variable GODEBUG"},
		"the service account of another Pod": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Env = append(main.Env, corev1.EnvVar{Name: "KARMADA_SERVICE_ACCOUNT_DIR", Value: "/somewhere"})
		}, reasonConfigError, "variable KARMADA_SERVICE_ACCOUNT_DIR"},
		"a directory of the machine": {func(pod *corev1.Pod, main *corev1.Container) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			main.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/host"}}
		}, reasonConfigError, "hostPath"},
		"a directory above its volume": {func(pod *corev1.Pod, main *corev1.Container) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			main.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v", SubPath: "../../../.."}}
		}, reasonConfigError, "stay in the volume"},
		"a probe of another host": {func(_ *corev1.Pod, main *corev1.Container) {
			main.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254", Port: intstr.FromInt32(80)}}}
		}, reasonConfigError, "probe of host"},
		"a command after the start": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"id"}}}}
		}, reasonConfigError, "lifecycle"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, t.TempDir(), &corev1.ConfigMap{ObjectMeta: objectMeta("evil"), Data: map[string]string{"AUDIT": "/tmp/evil.so"}})
			n.backoff = backoff{first: time.Hour, limit: time.Hour}
			pod := testPod("attack", "wait")
			test.ask(pod, &pod.Spec.Containers[0])
			n.create(t, pod)
			refused := n.await(t, "attack", "refused", func(pod *corev1.Pod) error {
				waiting := mainStatus(pod).State.Waiting
				if waiting == nil || !strings.Contains(waiting.Message, test.told) {
					return fmt.Errorf("its state is %+v", mainStatus(pod).State)
				}
				return nil
			})
			if status := mainStatus(refused); status.ContainerID != "" || status.State.Waiting.Reason != test.reason && status.State.Waiting.Reason != reasonPullBackOff {
				t.Errorf("its status is %+v, want reason %s", status, test.reason)
			}
		})
	}
}

func TestAnExecProbeRunsNoCommandOfTheMachine(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	n := startNode(t, t.TempDir())
	pod := testPod("probe", "wait")
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "touch " + mark}}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
	n.create(t, pod)
	n.await(t, "probe", "running", running)
	p := n.hosted(namespace, "probe").Container("main").(*container)
	if err := p.exec(t.Context(), []string{"/bin/sh", "-c", "touch " + mark}, nil); !errors.Is(err, layout.ErrForeign) {
		t.Errorf("the probe ended with %v", err)
	}
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran (%v)", err)
	}
}

var errOff = errors.New("programs are off")

func TestANodeThatIsOffSaysWhy(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir)
	client := n.client
	n.stop()
	off := New(Options{Name: nodeName, Dir: dir, Client: client, APIServer: "127.0.0.1:6443", Capacity: n.options.Capacity, Off: errOff})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- off.Run(ctx) }()
	defer func() { cancel(); <-done }()
	n.create(t, testPod("agent", "wait"))
	n.await(t, "agent", "a reason", waitingFor(reasonConfigError, errOff.Error()))
}
