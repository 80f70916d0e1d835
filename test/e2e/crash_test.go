package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	burstSize            = 60
	killAfterDeployments = 25
	burstNamespace       = "default"
)

// TestControlPlaneResumesAfterKill kills the control plane during a burst of Deployments,
// starts it again in the foreground, and stops it with SIGINT to its process group.
func TestControlPlaneResumesAfterKill(t *testing.T) {
	crashed := &installation{dir: filepath.Join(t.TempDir(), "crashed")}
	t.Cleanup(crashed.remove)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := crashed.up(ctx, "--members", "2", "--nodes-per-member", "1"); err != nil {
		t.Fatal(err)
	}
	policy := selectAll(deploymentSelector).propagationPolicy(burstNamespace, member1, member2)
	if err := crashed.karmada.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	acknowledged, delivered := crashed.killControlPlaneDuringBurst(t)
	crashed.awaitProcessesEnded(t, stopTimeout)

	foreground := crashed.restartInForeground(t)
	stored, err := deploymentUIDs(t.Context(), crashed.karmada)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range acknowledged {
		if stored[name] == "" {
			t.Errorf("Deployment %s was created before the crash and is lost", name)
		}
	}
	// Create all Deployments again, as a user does who got errors.
	crashed.submitBurst(t.Context(), func(_ string, err error) {
		if client.IgnoreAlreadyExists(err) != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{member1, member2} {
		crashed.awaitBurstDelivered(t, name)
		now, err := deploymentUIDs(t.Context(), crashed.members[name])
		if err != nil {
			t.Fatal(err)
		}
		for deployment, id := range delivered[name] {
			if now[deployment] != id {
				t.Errorf("Deployment %s of %s was recreated", deployment, name)
			}
		}
	}
	foreground.interrupt(t)
	crashed.awaitProcessesEnded(t, stopTimeout)
}

func TestUpInterruptedDuringStart(t *testing.T) {
	interrupted := &installation{dir: filepath.Join(t.TempDir(), "begun")}
	t.Cleanup(interrupted.remove)
	foreground := interrupted.startInForeground(t, "--members", "2")
	eventuallyWithin(t, startTimeout, "start of the members", func(context.Context) error {
		running, err := interrupted.processCommandLines()
		if err == nil && len(running) < 3 {
			err = fmt.Errorf("the running processes are %q", running)
		}
		return err
	})
	foreground.interrupt(t)
	interrupted.awaitProcessesEnded(t, stopTimeout)
}

// submitBurst creates the Deployments of the burst with four workers.
func (i *installation) submitBurst(ctx context.Context, done func(name string, err error)) {
	names := make(chan string)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for name := range names {
				done(name, i.karmada.Create(ctx, newDeployment(burstNamespace, name, 1)))
			}
		})
	}
	for n := range burstSize {
		names <- fmt.Sprintf("web-%02d", n)
	}
	close(names)
	workers.Wait()
}

// killControlPlaneDuringBurst kills the control plane during the burst. It returns the
// names of the Deployments that were created before the kill, and the UIDs of the
// Deployments in the members at the time of the kill.
func (i *installation) killControlPlaneDuringBurst(t *testing.T) (acknowledged []string, delivered map[string]map[string]types.UID) {
	t.Helper()
	pid, err := i.processID(controlPlane)
	if err != nil {
		t.Fatal(err)
	}
	delivered = map[string]map[string]types.UID{}
	var mu sync.Mutex
	i.submitBurst(t.Context(), func(name string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			return
		}
		acknowledged = append(acknowledged, name)
		if len(acknowledged) != killAfterDeployments {
			return
		}
		for member, side := range i.members {
			if delivered[member], err = deploymentUIDs(t.Context(), side); err != nil {
				t.Error(err)
			}
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	if len(acknowledged) == burstSize {
		t.Fatal("all Deployments of the burst were created before the control plane was killed")
	}
	return acknowledged, delivered
}

// awaitProcessesEnded waits until no process of the installation runs.
func (i *installation) awaitProcessesEnded(t *testing.T, limit time.Duration) {
	t.Helper()
	eventuallyWithin(t, limit, "exit of all processes", func(context.Context) error {
		running, err := i.processCommandLines()
		if err == nil && len(running) > 0 {
			err = fmt.Errorf("these processes still run: %q", running)
		}
		return err
	})
}

// awaitBurstDelivered waits until a member runs every Deployment of the burst, with one Pod
// and one Work for each.
func (i *installation) awaitBurstDelivered(t *testing.T, member string) {
	t.Helper()
	want := map[string]int{}
	for n := range burstSize {
		want[fmt.Sprintf("web-%02d", n)] = 1
	}
	eventually(t, "the burst in "+member, func(ctx context.Context) error {
		got, err := countRunningPods(ctx, i.members[member])
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("running Pods of each Deployment (-want +got):\n%s", diff)
		}
		works, err := listWorks(ctx, i, member, burstNamespace)
		if err == nil && len(works) != burstSize {
			err = fmt.Errorf("%d Works for %d Deployments", len(works), burstSize)
		}
		return err
	})
}

// countRunningPods counts the running Pods of each application. Pods that do not run are
// counted under "".
func countRunningPods(ctx context.Context, cluster client.Client) (map[string]int, error) {
	pods := &corev1.PodList{}
	if err := cluster.List(ctx, pods, client.InNamespace(burstNamespace)); err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, pod := range pods.Items {
		name := pod.Labels["app"]
		if pod.Status.Phase != corev1.PodRunning {
			name = ""
		}
		count[name]++
	}
	return count, nil
}

func deploymentUIDs(ctx context.Context, cluster client.Client) (map[string]types.UID, error) {
	list := &appsv1.DeploymentList{}
	if err := cluster.List(ctx, list, client.InNamespace(burstNamespace)); err != nil {
		return nil, err
	}
	found := map[string]types.UID{}
	for _, deployment := range list.Items {
		found[deployment.Name] = deployment.UID
	}
	return found, nil
}

// klogLine matches a log line of klog, which Kubernetes libraries use.
var klogLine = regexp.MustCompile(`(?m)^[IWEF]\d{4} .*$`)

// foregroundProcess is a program that the test runs in the foreground.
type foregroundProcess struct {
	cmd    *exec.Cmd
	ended  chan error
	mu     sync.Mutex
	output bytes.Buffer
}

// Write collects the output of the program.
func (f *foregroundProcess) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.output.Write(text)
}

func (f *foregroundProcess) outputText() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.output.String()
}

// startInForeground starts the installation and does not wait until it is ready.
func (i *installation) startInForeground(t *testing.T, args ...string) *foregroundProcess {
	t.Helper()
	f := &foregroundProcess{ended: make(chan error, 1)}
	f.cmd = exec.Command(filepath.Join(binDir, "karmada"), append([]string{"up", "--data-dir", i.dir}, args...)...)
	f.cmd.Env, f.cmd.Stdout, f.cmd.Stderr = cleanEnvironment(), f, f
	// Start the command in its own process group, as a shell does.
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { f.ended <- f.cmd.Wait() }()
	return f
}

// restartInForeground starts the installation again and waits until it is ready.
func (i *installation) restartInForeground(t *testing.T) *foregroundProcess {
	t.Helper()
	f := i.startInForeground(t)
	eventuallyWithin(t, startTimeout, "second start", func(context.Context) error {
		if !strings.Contains(f.outputText(), "Karmada is up.") {
			return errors.New(f.outputText() + i.logTails())
		}
		return nil
	})
	if err := i.connectClients(); err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(i.members)); !slices.Equal(names, []string{member1, member2}) {
		t.Fatalf("the members after the second start are %v", names)
	}
	return f
}

// interrupt sends SIGINT to the process group, as Ctrl-C does in a terminal.
func (f *foregroundProcess) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-f.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	limit := time.NewTimer(stopTimeout)
	defer limit.Stop()
	select {
	case err := <-f.ended:
		if err != nil {
			t.Errorf("karmada up exited with %v:\n%s", err, f.outputText())
		}
		if logged := klogLine.FindString(f.outputText()); logged != "" {
			t.Errorf("the output for users contains the log line %q", logged)
		}
	case <-limit.C:
		t.Errorf("karmada up has not exited %s after SIGINT", stopTimeout)
	}
}
