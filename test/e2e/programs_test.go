package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	controllerManager = "karmada-controller-manager"
	scheduler         = "karmada-scheduler"
	// leaseDuration is the time after which a standby replaces a killed leader.
	// renewDeadline is the time for which a leader tries to renew its Lease. Both are
	// longer than the time for which a busy machine pauses a process.
	leaseDuration = 15 * time.Second
	renewDeadline = 12 * time.Second
)

// startProgram starts a component of Karmada as a separate process, with the API server of
// a kubeconfig.
func startProgram(t *testing.T, program, kubeconfig string, args ...string) *foregroundProcess {
	t.Helper()
	f := &foregroundProcess{ended: make(chan error, 1)}
	f.cmd = exec.Command(filepath.Join(binDir, program), append([]string{
		"--kubeconfig", kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--leader-elect-lease-duration=" + leaseDuration.String(), "--leader-elect-renew-deadline=" + renewDeadline.String(),
		"--leader-elect-retry-period=500ms",
	}, args...)...)
	f.cmd.Env, f.cmd.Stdout, f.cmd.Stderr = cleanEnvironment(), f, f
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Several functions wait for the exit. Each receives the error from the channel and
	// sends it back for the next function.
	go func() { f.ended <- f.cmd.Wait() }()
	t.Cleanup(func() {
		_ = f.cmd.Process.Kill()
		f.ended <- <-f.ended
		if t.Failed() {
			t.Logf("log of %s:\n%s", program, f.outputText())
		}
	})
	return f
}

// awaitExit waits until the program exits, and returns its exit code.
func (f *foregroundProcess) awaitExit(t *testing.T, limit time.Duration) int {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-f.ended:
		f.ended <- err
		return f.cmd.ProcessState.ExitCode()
	case <-timer.C:
		t.Fatalf("%s has not exited after %s", f.cmd.Path, limit)
		return 0
	}
}

func (f *foregroundProcess) sendSignal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := f.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// leaseHolder returns the holder of a Lease in the control plane, or an empty string.
func (i *installation) leaseHolder(ctx context.Context, name string) (string, error) {
	lease := &coordinationv1.Lease{}
	err := i.karmada.Get(ctx, client.ObjectKey{Namespace: "karmada-system", Name: name}, lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", client.IgnoreNotFound(err)
	}
	return *lease.Spec.HolderIdentity, nil
}

// awaitNewLeaseHolder waits until a Lease has a holder other than before.
func (i *installation) awaitNewLeaseHolder(t *testing.T, name, before string) string {
	t.Helper()
	var now string
	eventually(t, "a new holder of "+name, func(ctx context.Context) error {
		var err error
		if now, err = i.leaseHolder(ctx, name); err == nil && (now == "" || now == before) {
			err = fmt.Errorf("the holder is %q", now)
		}
		return err
	})
	return now
}

// TestStandbyControllerManagerTakesOver kills the leading controller manager during a
// burst. The standby delivers the remaining Deployments and repeats no write.
func TestStandbyControllerManagerTakesOver(t *testing.T) {
	i := &installation{dir: filepath.Join(t.TempDir(), "replicas")}
	t.Cleanup(i.remove)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := i.up(ctx, "--members", "2", "--nodes-per-member", "1", "--components="); err != nil {
		t.Fatal(err)
	}
	startProgram(t, scheduler, i.karmadaConfig())
	leader := startProgram(t, controllerManager, i.karmadaConfig())
	first := i.awaitNewLeaseHolder(t, controllerManager, "")
	standby := startProgram(t, controllerManager, i.karmadaConfig())
	if err := i.awaitClustersReady(ctx, member1, member2); err != nil {
		t.Fatal(err)
	}
	if err := i.karmada.Create(t.Context(), selectAll(deploymentSelector).propagationPolicy(burstNamespace, member1, member2)); err != nil {
		t.Fatal(err)
	}

	delivered := i.killProgramDuringBurst(t, leader)
	second := i.awaitNewLeaseHolder(t, controllerManager, first)
	for _, name := range []string{member1, member2} {
		i.awaitBurstDelivered(t, name)
		i.checkWrittenOnce(t, name, delivered[name])
	}

	standby.sendSignal(t, syscall.SIGTERM)
	if code := standby.awaitExit(t, stopTimeout); code != 0 {
		t.Errorf("the controller manager exited with %d after SIGTERM", code)
	}
	if now, err := i.leaseHolder(t.Context(), controllerManager); err != nil || now == second {
		t.Errorf("the Lease is held by %q after its holder has exited: %v", now, err)
	}
}

// killProgramDuringBurst submits the burst and kills a program during it. It returns the
// UIDs of the Deployments in the members at that time.
func (i *installation) killProgramDuringBurst(t *testing.T, victim *foregroundProcess) map[string]map[string]types.UID {
	t.Helper()
	delivered := map[string]map[string]types.UID{}
	var mu sync.Mutex
	stored := 0
	i.submitBurst(t.Context(), func(_ string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
			return
		}
		if stored++; stored != killAfterDeployments {
			return
		}
		eventually(t, "a Deployment in every member", func(ctx context.Context) error {
			var errs []error
			for _, name := range slices.Sorted(maps.Keys(i.members)) {
				delivered[name], err = deploymentUIDs(ctx, i.members[name])
				if err == nil && len(delivered[name]) == 0 {
					err = fmt.Errorf("no Deployment in %s", name)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		})
		victim.sendSignal(t, syscall.SIGKILL)
	})
	return delivered
}

// checkWrittenOnce checks that no delivered Deployment was recreated in a member, and that
// each Deployment was written only once.
func (i *installation) checkWrittenOnce(t *testing.T, member string, delivered map[string]types.UID) {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := i.members[member].List(t.Context(), list, client.InNamespace(burstNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, deployment := range list.Items {
		if id, ok := delivered[deployment.Name]; ok && id != deployment.UID {
			t.Errorf("Deployment %s of %s was recreated", deployment.Name, member)
		}
		if deployment.Generation != 1 {
			t.Errorf("Deployment %s of %s was written %d times", deployment.Name, member, deployment.Generation)
		}
	}
}

// isolatedSchedulerFlags returns flags for a scheduler that runs beside the scheduler of
// the shared installation and schedules none of the bindings of this installation.
func isolatedSchedulerFlags(lease string) []string {
	return []string{"--scheduler-name=e2e", "--leader-elect-resource-name=" + lease}
}

func TestProgramExitsWhenLeaseIsLost(t *testing.T) {
	t.Parallel()
	const lease = "e2e-lost"
	program := startProgram(t, scheduler, shared.karmadaConfig(), isolatedSchedulerFlags(lease)...)
	shared.awaitNewLeaseHolder(t, lease, "")
	const thief = "somebody-else"
	stolen := &coordinationv1.Lease{}
	stolen.Namespace, stolen.Name = "karmada-system", lease
	updateObject(t, stolen, func(l *coordinationv1.Lease) {
		forLong := int32(time.Hour.Seconds())
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = new(thief), &forLong
	})
	if code := program.awaitExit(t, renewDeadline+stopTimeout); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(program.outputText(), "error: leader election lost") {
		t.Errorf("the output does not contain the loss of the Lease:\n%s", program.outputText())
	}
	if now, err := shared.leaseHolder(t.Context(), lease); err != nil || now != thief {
		t.Errorf("the Lease is held by %q, want %q: %v", now, thief, err)
	}
}

func TestHealthAndMetricsShareAnAddress(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	program := startProgram(t, scheduler, shared.karmadaConfig(), append(isolatedSchedulerFlags("e2e-served"),
		"--metrics-bind-address="+address, "--health-probe-bind-address="+address)...)
	for path, want := range map[string]string{
		"/healthz": "ok", "/healthz/ping": "ok", "/metrics": `karmada_build_info{build_date="`,
	} {
		eventually(t, path, func(ctx context.Context) error {
			text, err := httpGet(ctx, "http://"+address+path)
			if err == nil && !strings.Contains(text, want) {
				err = fmt.Errorf("the response does not contain %s", want)
			}
			return err
		})
	}
	program.sendSignal(t, syscall.SIGINT)
	if code := program.awaitExit(t, stopTimeout); code != 0 {
		t.Errorf("exit code %d after SIGINT", code)
	}
}

// memberKubeconfig writes a kubeconfig whose current context is one member, and returns its
// path.
func (i *installation) memberKubeconfig(t *testing.T, member string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(i.membersConfig())
	if err != nil {
		t.Fatal(err)
	}
	config.CurrentContext = member
	path := filepath.Join(t.TempDir(), member+".config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProgramReportsMissingAPIs runs a program with an API server without the APIs of
// Karmada.
func TestProgramReportsMissingAPIs(t *testing.T) {
	t.Parallel()
	program := startProgram(t, controllerManager, shared.memberKubeconfig(t, spareMember), "--leader-elect-resource-namespace=elections")
	eventually(t, "log messages about missing APIs", func(context.Context) error {
		for _, want := range []string{
			"Waiting for the control plane", "works.work.karmada.io: not served", "install the CustomResourceDefinitions",
			"karmada-aggregated-apiserver", "namespace elections of the Lease is missing",
		} {
			if !strings.Contains(program.outputText(), want) {
				return fmt.Errorf("the log does not contain %q:\n%s", want, program.outputText())
			}
		}
		return nil
	})
	if strings.Contains(program.outputText(), "reflector") {
		t.Errorf("the program watches APIs that do not exist:\n%s", program.outputText())
	}
	program.sendSignal(t, syscall.SIGTERM)
	if code := program.awaitExit(t, stopTimeout); code != 0 {
		t.Errorf("exit code %d after SIGTERM while the program waits", code)
	}
}

func TestProgramUsageErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		program    string
		args       []string
		code       int
		wantStderr string
	}{
		"missing kubeconfig": {scheduler, nil, 1, "--kubeconfig"},
		"unknown flag":       {controllerManager, []string{"--no-such-flag"}, 2, "--no-such-flag"},
		"invalid value":      {controllerManager, []string{"--controllers=nothing"}, 2, `there is no controller "nothing"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			runProgram(t.Context(), nil, test.program, test.args...).mustFail(t, test.code, test.wantStderr)
		})
	}
}

func httpGet(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %s", answer.Status, text)
	}
	return string(text), err
}

// freeAddress returns a local address on which no process listens. The port is below the
// ephemeral ports, so that no outgoing connection uses it.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 20 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))) // no secret
		if err == nil {
			defer func() { _ = listener.Close() }()
			return listener.Addr().String()
		}
	}
	t.Fatal("found no free port")
	return ""
}
