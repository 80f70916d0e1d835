package processnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// secretVolume returns a volume with all keys of a Secret.
func secretVolume(name string) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}
}

const (
	nodeName  = "programs"
	namespace = "karmada-system"
	timeout   = time.Minute
)

// testNode is a node with a fake API server.
type testNode struct {
	*Node
	client *fake.Clientset
	stop   func()
}

func startNode(t *testing.T, dir string, objects ...runtime.Object) *testNode {
	t.Helper()
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "token" {
			return false, nil, nil
		}
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: "a-token", ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour)),
		}}, nil
	})
	return startNodeWithClient(t, dir, client)
}

func startNodeWithClient(t *testing.T, dir string, client *fake.Clientset) *testNode {
	t.Helper()
	n := &testNode{client: client, Node: New(Options{
		Name: nodeName, Dir: dir, Client: client, APIServer: "127.0.0.1:6443", Version: "v1",
		Capacity: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")},
	})}
	n.selectProgram = func(c Container) (installedProgram, error) {
		if name := imageName(c.Image); slices.Contains([]string{"karmada-test", "karmada-absent", "karmada-linked"}, name) {
			return installedProgram{name: name, file: name}, nil
		}
		return c.program()
	}
	n.findProgram = func(program string) (string, error) {
		if program != "karmada-test" && program != Image {
			return findProgramIn(program, []string{dir})
		}
		return os.Executable()
	}
	n.backoff = restartBackoff{initial: 10 * time.Millisecond, max: 50 * time.Millisecond, resetAfter: time.Hour}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	n.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the node ended with %v", err)
		}
		n.stop = func() {}
	}
	t.Cleanup(func() { n.stop() })
	return n
}

// testPod returns a Pod that runs the test binary.
func testPod(name, role string, args ...string) *corev1.Pod {
	grace := int64(5)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(name + "-uid")},
		Spec: corev1.PodSpec{
			NodeName: nodeName, RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: "docker.io/karmada/karmada-test:v1", Args: args, Env: []corev1.EnvVar{{Name: roleVariable, Value: role}},
			}},
		},
	}
}

func (n *testNode) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if _, err := n.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await waits until check returns nil for the Pod.
func (n *testNode) await(t *testing.T, name, description string, check func(*corev1.Pod) error) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		pod, err := n.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			err = check(pod)
		}
		if err == nil {
			return pod
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", description, err)
		case <-ticker.C:
		}
	}
}

func mainStatus(pod *corev1.Pod) corev1.ContainerStatus {
	if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
		return corev1.ContainerStatus{}
	}
	return pod.Status.ContainerStatuses[0]
}

func isRunning(pod *corev1.Pod) error {
	if status := mainStatus(pod); status.State.Running == nil || pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("the phase is %s: %+v", pod.Status.Phase, status.State)
	}
	return nil
}

func hasReadyStatus(want corev1.ConditionStatus) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == want {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %v", pod.Status.Conditions)
	}
}

func isWaitingFor(reason, message string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		waiting := mainStatus(pod).State.Waiting
		if waiting == nil || waiting.Reason != reason || !strings.Contains(waiting.Message, message) {
			return fmt.Errorf("the state is %+v", mainStatus(pod).State)
		}
		return nil
	}
}

func isGone(pod *corev1.Pod) error {
	if pod != nil && pod.Name != "" {
		return errors.New("the Pod still exists")
	}
	return nil
}

// processID returns the process ID of the Pod's program.
func processID(t *testing.T, pod *corev1.Pod) int {
	t.Helper()
	var pid int
	if _, err := fmt.Sscanf(mainStatus(pod).ContainerID, "process://%d", &pid); err != nil {
		t.Fatalf("reading %q: %v", mainStatus(pod).ContainerID, err)
	}
	return pid
}

func (n *testNode) logs(t *testing.T, name string) string {
	t.Helper()
	var out strings.Builder
	path := filepath.Join(n.options.Dir, "pods", name+"-uid", "containers", "main", "logs", "0.log")
	if err := readLog(t.Context(), path, nil, logQuery{Tail: -1}, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestNodeRegistersAndRenewsLease(t *testing.T) {
	n := startNode(t, t.TempDir())
	n.await(t, "none", "Node and Lease", func(*corev1.Pod) error {
		node, err := n.client.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node.Labels[clusterv1alpha1.ProgramNodeLabel] == "" || len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != clusterv1alpha1.ProgramNodeTaint {
			return fmt.Errorf("label and taint are %v and %v", node.Labels, node.Spec.Taints)
		}
		_, err = n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), nodeName, metav1.GetOptions{})
		return err
	})
}

func TestProgramReadsFilesAndAddress(t *testing.T) {
	n := startNode(t, t.TempDir(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: namespace}, Data: map[string][]byte{"greeting": []byte("hello")},
	})
	pod := testPod("print", "print", "$(FILE)")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = []corev1.Volume{secretVolume("settings")}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/etc/settings"}}
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "FILE", Value: "/etc/settings/greeting"})
	n.create(t, pod)
	ended := n.await(t, "print", "end of the program", func(pod *corev1.Pod) error {
		if pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("the phase is %s: %+v", pod.Status.Phase, mainStatus(pod).State)
		}
		return nil
	})
	if want, got := "hello at "+ended.Status.PodIP, n.logs(t, "print"); !strings.Contains(got, want) {
		t.Errorf("the program wrote %q, want %q", got, want)
	}
	if !strings.HasPrefix(ended.Status.PodIP, "127.") || ended.Status.PodIP == hostAddress {
		t.Errorf("the address of the Pod is %s", ended.Status.PodIP)
	}
}

func TestReadinessFollowsProbe(t *testing.T) {
	n := startNode(t, t.TempDir())
	healthy := filepath.Join(t.TempDir(), "well")
	pod := testPod("serve", "serve", ":18080", healthy)
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(18080)}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
	n.create(t, pod)
	n.await(t, "serve", "running", isRunning)
	n.await(t, "serve", "not ready", hasReadyStatus(corev1.ConditionFalse))
	if err := os.WriteFile(healthy, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.await(t, "serve", "ready", hasReadyStatus(corev1.ConditionTrue))
	if err := os.Remove(healthy); err != nil {
		t.Fatal(err)
	}
	n.await(t, "serve", "not ready again", hasReadyStatus(corev1.ConditionFalse))
}

func TestTwoPodsListenOnSamePort(t *testing.T) {
	n := startNode(t, t.TempDir())
	for _, name := range []string{"one", "two"} {
		pod := testPod(name, "serve", "0.0.0.0:18081", ".")
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(18081)}}}
		n.create(t, pod)
	}
	for _, name := range []string{"one", "two"} {
		n.await(t, name, name+" is ready", hasReadyStatus(corev1.ConditionTrue))
	}
}

func TestKilledProgramIsRestarted(t *testing.T) {
	n := startNode(t, t.TempDir())
	n.create(t, testPod("wait", "wait"))
	first := processID(t, n.await(t, "wait", "running", isRunning))
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	restarted := n.await(t, "wait", "running again", func(pod *corev1.Pod) error {
		if mainStatus(pod).RestartCount == 0 {
			return errors.New("the program was not restarted")
		}
		return isRunning(pod)
	})
	if end := mainStatus(restarted).LastTerminationState.Terminated; end == nil || end.ExitCode != 137 || end.Reason != reasonError {
		t.Errorf("the last termination state is %+v", end)
	}
	if second := processID(t, restarted); second == first {
		t.Errorf("the program is still process %d", first)
	}
}

func TestRestartPolicy(t *testing.T) {
	tests := map[string]struct {
		policy corev1.RestartPolicy
		code   string
		phase  corev1.PodPhase
	}{
		"Never, after a failure":     {corev1.RestartPolicyNever, "3", corev1.PodFailed},
		"Never, after success":       {corev1.RestartPolicyNever, "0", corev1.PodSucceeded},
		"OnFailure, after success":   {corev1.RestartPolicyOnFailure, "0", corev1.PodSucceeded},
		"OnFailure, after a failure": {corev1.RestartPolicyOnFailure, "3", corev1.PodRunning},
		"Always, after success":      {corev1.RestartPolicyAlways, "0", corev1.PodRunning},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, t.TempDir())
			pod := testPod("exit", "exit", test.code)
			pod.Spec.RestartPolicy = test.policy
			n.create(t, pod)
			n.await(t, "exit", "phase "+string(test.phase), func(pod *corev1.Pod) error {
				if pod.Status.Phase != test.phase || test.phase == corev1.PodRunning && mainStatus(pod).RestartCount < 2 {
					return fmt.Errorf("the phase is %s: %+v", pod.Status.Phase, mainStatus(pod))
				}
				return nil
			})
		})
	}
}

func TestStartFailureIsReported(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct {
		change          func(*corev1.Pod)
		reason, message string
	}{
		"a missing program": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = "karmada-absent" }, reasonPullBackOff, dir,
		},
		"an image of another project": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx" }, reasonPullBackOff, "runs images of Karmada only",
		},
		"a missing Secret": {
			func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{secretVolume("absent")} }, reasonCreating, `"absent" not found`,
		},
		"a hostPath": {
			func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/run/docker.sock", Type: new(corev1.HostPathSocket)}}}}
			}, reasonConfigError, "hostPath of type Socket",
		},
		"a persistent volume": {
			func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
			}, reasonConfigError, "persistentVolumeClaim",
		},
		"an image of all programs without a command": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = Image }, reasonStartError, "the command is missing",
		},
		"an image of all programs with another command": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Image, p.Spec.Containers[0].Command = Image, []string{"/bin/karmada"}
			}, reasonStartError, "there is no other command",
		},
		"a lifecycle hook": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{} }, reasonConfigError, "lifecycle",
		},
		"a variable from a missing Secret": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Key: "key",
				}}})
			}, reasonConfigError, `"absent" not found`,
		},
		"another command": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"/bin/sh", "-c"} }, reasonStartError, "/bin/sh",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, dir)
			pod := testPod("p", "wait")
			test.change(pod)
			n.create(t, pod)
			got := n.await(t, "p", "reason "+test.reason, isWaitingFor(test.reason, test.message))
			if got.Status.Phase != corev1.PodPending {
				t.Errorf("the phase is %s", got.Status.Phase)
			}
			if err := n.client.CoreV1().Pods(namespace).Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestPodStartsWhenSecretIsCreated(t *testing.T) {
	n := startNode(t, t.TempDir())
	pod := testPod("late", "wait")
	pod.Spec.Volumes = []corev1.Volume{secretVolume("late")}
	n.create(t, pod)
	n.await(t, "late", "waiting", isWaitingFor(reasonCreating, "late"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: namespace}}
	if _, err := n.client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.await(t, "late", "running", isRunning)
}

func TestInitContainersRunFirst(t *testing.T) {
	n := startNode(t, t.TempDir())
	pod := testPod("init", "print", "/shared/exit")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	first := pod.Spec.Containers[0]
	first.Name, first.Env, first.Args = "first", []corev1.EnvVar{{Name: roleVariable, Value: "exit"}}, []string{"2"}
	pod.Spec.InitContainers = []corev1.Container{first}
	n.create(t, pod)
	failed := n.await(t, "init", "failure", func(pod *corev1.Pod) error {
		if pod.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("the phase is %s", pod.Status.Phase)
		}
		return nil
	})
	if end := failed.Status.InitContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 2 {
		t.Errorf("the init container ended with %+v", end)
	}
	if state := mainStatus(failed).State; state.Waiting == nil {
		t.Errorf("the container was started: %+v", state)
	}
}

func TestDeletedPodEndsProgramFirst(t *testing.T) {
	n := startNode(t, t.TempDir())
	n.create(t, testPod("wait", "wait"))
	pod := n.await(t, "wait", "running", isRunning)
	pid := processID(t, pod)
	follower := followLog(t, n, "wait")
	if !follower.WaitFor("waiting") {
		t.Fatalf("the program wrote %q", follower.Text())
	}
	// The API server sets these fields when a user deletes a Pod on a node.
	now, grace := metav1.Now(), int64(5)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
	if _, err := n.client.CoreV1().Pods(namespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.await(t, "wait", "end of the Pod", isGone)
	if !follower.WaitFor("ending") {
		t.Errorf("the program did not get SIGTERM, it wrote %q", follower.Text())
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d still exists (%v)", pid, err)
	}
}

func TestNextNodeContinuesWithPods(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir)
	n.create(t, testPod("wait", "wait"))
	pid := processID(t, n.await(t, "wait", "running", isRunning))
	n.stop()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d still exists (%v)", pid, err)
	}
	if pod, err := n.client.CoreV1().Pods(namespace).Get(t.Context(), "wait", metav1.GetOptions{}); err != nil || isRunning(pod) != nil {
		t.Errorf("the stop of the node ended the Pod (%v)", err)
	}
	next := startNodeWithClient(t, dir, n.client)
	restarted := next.await(t, "wait", "running again", func(pod *corev1.Pod) error {
		if mainStatus(pod).RestartCount == 0 {
			return errors.New("the program was not restarted")
		}
		return isRunning(pod)
	})
	if processID(t, restarted) == pid {
		t.Errorf("the program is still process %d", pid)
	}
}

func TestNodeEnforcesPodCapacity(t *testing.T) {
	n := startNode(t, t.TempDir())
	for i := range 3 {
		n.create(t, testPod(fmt.Sprintf("wait-%d", i), "wait"))
		n.await(t, fmt.Sprintf("wait-%d", i), "running", isRunning)
	}
	n.create(t, testPod("wait-3", "wait"))
	n.await(t, "wait-3", "refused", func(pod *corev1.Pod) error {
		if pod.Status.Phase != corev1.PodFailed || pod.Status.Reason != "OutOfpods" {
			return fmt.Errorf("the phase is %s %s", pod.Status.Phase, pod.Status.Reason)
		}
		return nil
	})
}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace}
}
