package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAgentReconnectsAfterControlPlaneRestart registers a member of the shared installation
// with a second control plane. It kills and stops the second control plane. The agent runs
// in the shared installation and must reconnect by itself. No object may be recreated. The
// test does not run in parallel, because other tests join the same member.
func TestAgentReconnectsAfterControlPlaneRestart(t *testing.T) {
	const edge = "edge"
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	controlPlaneInstallation := &installation{dir: filepath.Join(t.TempDir(), "away")}
	t.Cleanup(controlPlaneInstallation.remove)
	if err := controlPlaneInstallation.up(ctx, "--members", "0"); err != nil {
		t.Fatal(err)
	}
	created := controlPlaneInstallation.karmadactl(ctx, "token", "create", "--print-register-command")
	created.mustSucceed(t)
	registerArgs := strings.Fields(created.stdout)[1:]
	runProgram(ctx, nil, "karmadactl", append(registerArgs, "--kubeconfig", shared.membersConfig(), "--context", spareMember, "--cluster-name", edge)...).mustSucceed(t)
	t.Cleanup(func() {
		unregisterArgs := []string{"unregister", edge, "--force", "--cluster-kubeconfig", shared.membersConfig(), "--cluster-context", spareMember}
		controlPlaneInstallation.karmadactl(context.WithoutCancel(t.Context()), unregisterArgs...).mustSucceed(t)
	})

	settings := newConfigMap("default", "settings", "1")
	createObjects(t, controlPlaneInstallation, settings, selectAll(configMapSelector).propagationPolicy("default", edge))
	id := awaitConfigMapValue(t, spareMember, settings, "1")
	stops := map[string]func(){
		"2": func() {
			pid, err := controlPlaneInstallation.processID(controlPlane)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			controlPlaneInstallation.awaitProcessesEnded(t, stopTimeout)
		},
		"3": func() {
			runProgram(ctx, nil, "karmada", "down", "--data-dir", controlPlaneInstallation.dir).mustSucceed(t)
		},
	}
	for value, stop := range stops {
		stop()
		if err := controlPlaneInstallation.up(ctx); err != nil {
			t.Fatal(err)
		}
		controlPlaneInstallation.changeSettings(t, value)
		if now := awaitConfigMapValue(t, spareMember, settings, value); now != id {
			t.Errorf("the ConfigMap was recreated: UID %s, before %s", now, id)
		}
	}
}
