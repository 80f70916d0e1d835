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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone/processnode/layout"
	"karmada.io/karmada/internal/testenv/testetcd"
)

// isEnded returns an error until the Pod has ended.
func isEnded(pod *corev1.Pod) error {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return fmt.Errorf("the phase is %s: %+v", pod.Status.Phase, mainStatus(pod).State)
	}
	return nil
}

// TestProgramCannotAccessFilesOfMachine runs a program that tries forbidden accesses. A user who
// may create Pods could make a program of Karmada try the same, with flags, or with a kubeconfig
// that names a command or files.
func TestProgramCannotAccessFilesOfMachine(t *testing.T) {
	if !isConfinementSupported() {
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
	n.await(t, "neighbour", "running", isRunning)
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
	finished := n.await(t, "reach", "its end", isEnded)
	if finished.Status.Phase != corev1.PodSucceeded {
		t.Errorf("the program accessed forbidden files:\n%s", n.logs(t, "reach"))
	}
	if data, err := os.ReadFile(key); err != nil || string(data) != "private" {
		t.Errorf("the key is %q (%v)", data, err)
	}
}

// TestProgramCannotUseEtcd gives a program the path of etcd's socket, as a user who may create Pods
// could with --etcd-servers. The kernel lets the program connect to the socket, because Landlock does
// not restrict connections to unix sockets by path.
func TestProgramCannotUseEtcd(t *testing.T) {
	home := t.TempDir()
	certs := pki.Dir{Path: filepath.Join(home, "pki")}
	socket := filepath.Join(home, "etcd", "etcd.sock")
	testetcd.StartIn(t, filepath.Dir(socket), certs)
	certificate := filepath.Join(certs.Path, "etcd-client")
	if err := connectToEtcd(socket, certificate); err != nil {
		t.Fatalf("the owner of the certificate cannot connect: %v", err)
	}
	n := startNode(t, filepath.Join(home, "node"))
	pod := testPod("etcd", "reach", "etcd", socket, "etcd with "+certificate, socket)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	n.create(t, pod)
	finished := n.await(t, "etcd", "its end", isEnded)
	log := n.logs(t, "etcd")
	for _, want := range []string{"etcd " + socket + " remote error: tls: certificate required", certificate + ".crt: permission denied"} {
		if !strings.Contains(log, want) || finished.Status.Phase != corev1.PodSucceeded {
			t.Errorf("the log of the program does not contain %q:\n%s", want, log)
		}
	}
}

func TestProgramUsesItsVolumes(t *testing.T) {
	n := startNode(t, t.TempDir())
	pod := testPod("write", "reach", "write", "/scratch/file", "write", "own", "write", "/seen/file")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "seen", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}, {Name: "seen", MountPath: "/seen", ReadOnly: true}}
	n.create(t, pod)
	n.await(t, "write", "its end", isEnded)
	log := n.logs(t, "write")
	for part, want := range map[string]bool{"/volumes/scratch/file\n": true, "reached: write own\n": true, "/volumes/seen/file <nil>": false} {
		if strings.Contains(log, part) != want {
			t.Errorf("the log contains %q: want %t\n%s", part, want, log)
		}
	}
}

// TestHostPathIsNotOfMachine mounts the root of the machine. The program gets an empty directory,
// which remains after the Pod.
func TestHostPathIsNotOfMachine(t *testing.T) {
	n := startNode(t, t.TempDir())
	pod := testPod("host", "reach", "list", "/host/etc", "read", "/host/etc/passwd", "write", "/host/kept")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/host"}}
	n.create(t, pod)
	n.await(t, "host", "its end", isEnded)
	log := n.logs(t, "host")
	if strings.Count(log, "reached: ") != 1 || !strings.Contains(log, "reached: write ") {
		t.Errorf("the program wrote\n%s", log)
	}
	if err := n.client.CoreV1().Pods(namespace).Delete(t.Context(), "host", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n.await(t, "host", "end of the Pod", isGone)
	kept, err := filepath.Glob(filepath.Join(n.options.Dir, hostDir, "*", "kept"))
	if err != nil || len(kept) != 1 {
		t.Errorf("the files after the Pod are %v (%v)", kept, err)
	}
}

// TestForbiddenPodSettingsAreRejected lists settings that a user who may create Pods can request.
// No program is started, and the status of the Pod contains the reason.
func TestForbiddenPodSettingsAreRejected(t *testing.T) {
	tests := map[string]struct {
		change          func(pod *corev1.Pod, main *corev1.Container)
		reason, message string
	}{
		"another program of the machine": {func(_ *corev1.Pod, main *corev1.Container) { main.Image = "sh" }, reasonErrImagePull, "no others"},
		"a program of no release":        {func(_ *corev1.Pod, main *corev1.Container) { main.Image = "karmada-shell" }, reasonErrImagePull, "no others"},
		"another command": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Command = []string{"/bin/sh", "-c", "id"}
		}, reasonStartError, "there is no other command"},
		"a preloaded library": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Env = append(main.Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/tmp/evil.so"})
		}, reasonConfigError, "variable LD_PRELOAD"},
		"a preloaded library from a ConfigMap": {func(_ *corev1.Pod, main *corev1.Container) {
			main.EnvFrom = []corev1.EnvFromSource{{Prefix: "LD_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "evil"}}}}
		}, reasonConfigError, "variable LD_AUDIT"},
		"a setting of the Go runtime": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Env = append(main.Env, corev1.EnvVar{Name: "GODEBUG", Value: "x509usefallbackroots=1"})
		}, reasonConfigError, "variable GODEBUG"},
		"the service account of another Pod": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Env = append(main.Env, corev1.EnvVar{Name: "KARMADA_SERVICE_ACCOUNT_DIR", Value: "/somewhere"})
		}, reasonConfigError, "variable KARMADA_SERVICE_ACCOUNT_DIR"},
		"a socket of the machine": {func(pod *corev1.Pod, main *corev1.Container) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/run/docker.sock", Type: new(corev1.HostPathSocket),
			}}}}
			main.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/run/docker.sock"}}
		}, reasonConfigError, "hostPath of type Socket"},
		"another DNS server": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Env = append(main.Env, corev1.EnvVar{Name: podenvironment.DNSServerVariable, Value: "192.0.2.7:53"})
		}, reasonConfigError, podenvironment.DNSServerVariable},
		"a directory above the volume": {func(pod *corev1.Pod, main *corev1.Container) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			main.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v", SubPath: "../../../.."}}
		}, reasonConfigError, "stay in the volume"},
		"a probe of another host": {func(_ *corev1.Pod, main *corev1.Container) {
			main.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254", Port: intstr.FromInt32(80)}}}
		}, reasonConfigError, "probe of host"},
		"a lifecycle hook": {func(_ *corev1.Pod, main *corev1.Container) {
			main.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"id"}}}}
		}, reasonConfigError, "lifecycle"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, t.TempDir(), &corev1.ConfigMap{ObjectMeta: objectMeta("evil"), Data: map[string]string{"AUDIT": "/tmp/evil.so"}})
			n.backoff = restartBackoff{initial: time.Hour, max: time.Hour}
			pod := testPod("attack", "wait")
			test.change(pod, &pod.Spec.Containers[0])
			n.create(t, pod)
			waiting := n.await(t, "attack", "refused", func(pod *corev1.Pod) error {
				waiting := mainStatus(pod).State.Waiting
				if waiting == nil || !strings.Contains(waiting.Message, test.message) {
					return fmt.Errorf("the state is %+v", mainStatus(pod).State)
				}
				return nil
			})
			if status := mainStatus(waiting); status.ContainerID != "" || status.State.Waiting.Reason != test.reason && status.State.Waiting.Reason != reasonPullBackOff {
				t.Errorf("the status is %+v, want reason %s", status, test.reason)
			}
		})
	}
}

func TestExecProbeRunsNoCommandOfMachine(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "mark")
	n := startNode(t, t.TempDir())
	pod := testPod("probe", "wait")
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "touch " + marker}}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
	n.create(t, pod)
	n.await(t, "probe", "running", isRunning)
	p := n.findPod(namespace, "probe").findContainer("main")
	if err := p.execWithOutput(t.Context(), []string{"/bin/sh", "-c", "touch " + marker}, nil); !errors.Is(err, layout.ErrForeignCommand) {
		t.Errorf("the probe ended with %v", err)
	}
	if _, err := os.Stat(marker); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command of the probe ran (%v)", err)
	}
}

var errDisabled = errors.New("programs are disabled")

func TestDisabledNodeReportsReason(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir)
	client := n.client
	n.stop()
	disabled := New(Options{Name: nodeName, Dir: dir, Client: client, APIServer: "127.0.0.1:6443", Capacity: n.options.Capacity, Disabled: errDisabled})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- disabled.Run(ctx) }()
	defer func() { cancel(); <-done }()
	n.create(t, testPod("agent", "wait"))
	n.await(t, "agent", "a reason", isWaitingFor(reasonConfigError, errDisabled.Error()))
}
