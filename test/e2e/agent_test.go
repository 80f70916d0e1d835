package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// agentNamespace is the namespace of the agent in a member.
const agentNamespace = "karmada-system"

// TestPullMemberRunsAgent starts an installation with three members, kills it during the
// registration of the last member, and starts it again. The last member then runs an agent.
// The test reads the log of the agent and runs commands in its Pod. Then it kills the
// agent, its member, and the control plane.
func TestPullMemberRunsAgent(t *testing.T) {
	pullInstallation := &installation{dir: filepath.Join(t.TempDir(), "pulled")}
	t.Cleanup(pullInstallation.remove)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	pullInstallation.killDuringRegistration(t, "--members", "3", "--nodes-per-member", "1")
	if err := pullInstallation.up(ctx); err != nil {
		t.Fatal(err)
	}
	pullInstallation.checkSyncModes(t, map[string]clusterv1alpha1.ClusterSyncMode{
		member1: clusterv1alpha1.Push, member2: clusterv1alpha1.Push, spareMember: clusterv1alpha1.Pull,
	})
	createObjects(t, pullInstallation, newConfigMap("default", "settings", "1"), selectAll(configMapSelector).propagationPolicy("default", member1, spareMember))
	pullInstallation.awaitSettings(t, spareMember, "1")

	config, err := clientcmd.BuildConfigFromFlags("", pullInstallation.memberKubeconfig(t, spareMember))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	member, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	agent := pullInstallation.awaitAgent(t, spareMember, 0)
	t.Run("the log of the agent can be read", func(t *testing.T) {
		text, err := member.CoreV1().Pods(agentNamespace).GetLogs(agent.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(text), `"Registered" cluster="member3"`) {
			t.Errorf("the log does not contain the registration (%v):\n%s", err, text)
		}
	})
	t.Run("exec runs only the agent program", func(t *testing.T) {
		stdout, err := execInPod(t.Context(), config, agent, "karmada-agent", "version")
		if err != nil || !strings.Contains(stdout, "karmada-agent") {
			t.Errorf("the version output is %q (%v)", stdout, err)
		}
		stdout, err = execInPod(t.Context(), config, agent, "cat", "/etc/kubeconfig/karmada-kubeconfig")
		if err == nil || stdout != "" || !strings.Contains(err.Error(), "no other command runs") {
			t.Errorf("exec ran another program of the machine: %q (%v)", stdout, err)
		}
	})
	t.Run("the log of a simulated Pod is rejected", func(t *testing.T) {
		web := &corev1.Pod{ObjectMeta: objectMeta("default", "simulated"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}}}
		if err := pullInstallation.members[spareMember].Create(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an error that names the simulated Pod", func(ctx context.Context) error {
			log, err := member.CoreV1().Pods("default").GetLogs(web.Name, &corev1.PodLogOptions{}).Stream(ctx)
			switch {
			case err == nil:
				return errors.Join(errors.New("the simulated Pod has a log"), log.Close())
			case !strings.Contains(err.Error(), "default/simulated is simulated"):
				return err
			}
			return nil
		})
	})

	firstProcess := processIDOf(t, agent)
	if err := syscall.Kill(firstProcess, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	restarted := pullInstallation.awaitAgent(t, spareMember, 1)

	pid, err := pullInstallation.processID(spareMember)
	if err != nil {
		t.Fatal(err)
	}
	secondProcess := processIDOf(t, restarted)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventuallyWithin(t, 5*time.Second, "exit of the agent with its member", func(context.Context) error {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", secondProcess))
		if err == nil && len(line) > 0 {
			return fmt.Errorf("process %d runs %q", secondProcess, line)
		}
		return nil
	})
	pullInstallation.awaitAgent(t, spareMember, 2)
	pullInstallation.changeSettings(t, "2")
	pullInstallation.awaitSettings(t, spareMember, "2")

	if pid, err = pullInstallation.processID(controlPlane); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	pullInstallation.awaitProcessesEnded(t, stopTimeout)
	restartCtx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := pullInstallation.up(restartCtx); err != nil {
		t.Fatal(err)
	}
	pullInstallation.changeSettings(t, "3")
	pullInstallation.awaitSettings(t, spareMember, "3")
}

// killDuringRegistration starts the installation and kills it when the third member has
// requested the certificate of its agent.
func (i *installation) killDuringRegistration(t *testing.T, args ...string) {
	t.Helper()
	f := i.startInForeground(t, args...)
	eventuallyWithin(t, startTimeout, "request for a certificate", func(ctx context.Context) error {
		if err := i.connectClients(); err != nil {
			return err
		}
		requests := &certificatesv1.CertificateSigningRequestList{}
		if err := i.karmada.List(ctx, requests); err != nil {
			return err
		}
		for _, request := range requests.Items {
			if strings.HasPrefix(request.Name, spareMember) {
				return nil
			}
		}
		return fmt.Errorf("%d requests: %s", len(requests.Items), f.outputText())
	})
	if err := f.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-f.ended
	i.awaitProcessesEnded(t, stopTimeout)
}

func (i *installation) checkSyncModes(t *testing.T, want map[string]clusterv1alpha1.ClusterSyncMode) {
	t.Helper()
	for name, mode := range want {
		cluster := &clusterv1alpha1.Cluster{}
		if err := i.karmada.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			t.Fatal(err)
		}
		if cluster.Spec.SyncMode != mode {
			t.Errorf("%s is in mode %s, want %s", name, cluster.Spec.SyncMode, mode)
		}
	}
}

func (i *installation) changeSettings(t *testing.T, value string) {
	t.Helper()
	eventually(t, "changing the settings", func(ctx context.Context) error {
		return i.karmada.Patch(ctx, newConfigMap("default", "settings", ""),
			client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"`+value+`"}}`)))
	})
}

func (i *installation) awaitSettings(t *testing.T, cluster, value string) {
	t.Helper()
	eventually(t, "settings "+value+" in "+cluster, func(ctx context.Context) error {
		found := &corev1.ConfigMap{}
		if err := i.members[cluster].Get(ctx, client.ObjectKey{Namespace: "default", Name: "settings"}, found); err != nil {
			return err
		}
		if found.Data["key"] != value {
			return fmt.Errorf("the settings are %v", found.Data)
		}
		return nil
	})
}

// awaitAgent waits until the agent of a member is ready after at least minRestarts
// restarts. It allows more restarts, because the agent may exit although the test does not
// kill it.
func (i *installation) awaitAgent(t *testing.T, cluster string, minRestarts int32) *corev1.Pod {
	t.Helper()
	var agent *corev1.Pod
	eventually(t, fmt.Sprintf("agent in %s after %d restarts", cluster, minRestarts), func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := i.members[cluster].List(ctx, pods, client.InNamespace(agentNamespace)); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d Pods", len(pods.Items))
		}
		agent = &pods.Items[0]
		for _, status := range agent.Status.ContainerStatuses {
			if status.Ready && status.RestartCount >= minRestarts {
				return nil
			}
		}
		return fmt.Errorf("the status of the agent is %+v", agent.Status)
	})
	return agent
}

// processIDOf returns the ID of the process of a Pod.
func processIDOf(t *testing.T, pod *corev1.Pod) int {
	t.Helper()
	var pid int
	if _, err := fmt.Sscanf(pod.Status.ContainerStatuses[0].ContainerID, "process://%d", &pid); err != nil {
		t.Fatalf("reading the process of Pod %s: %v", pod.Name, err)
	}
	return pid
}

// execInPod runs a command in a Pod, as kubectl exec does.
func execInPod(ctx context.Context, config *rest.Config, pod *corev1.Pod, command ...string) (stdout string, err error) {
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	request := api.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
	if err != nil {
		return "", err
	}
	var out, failed bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &failed}); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, failed.String())
	}
	return out.String(), nil
}
