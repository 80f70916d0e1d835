package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAgentReconnectsAfterControlPlaneRestart registers a member with a second control
// plane, and kills and stops this control plane. The agent runs in the other installation
// and reconnects by itself. No object is recreated. The test does not run in parallel,
// because other tests join the same member.
func TestAgentReconnectsAfterControlPlaneRestart(t *testing.T) {
	const edge = "edge"
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	away := &installation{dir: filepath.Join(t.TempDir(), "away")}
	t.Cleanup(away.remove)
	if err := away.up(ctx, "--members", "0"); err != nil {
		t.Fatal(err)
	}
	made := away.karmadactl(ctx, "token", "create", "--print-register-command")
	made.mustSucceed(t)
	typed := strings.Fields(made.stdout)[1:]
	runProgram(ctx, nil, "karmadactl", append(typed, "--kubeconfig", shared.membersConfig(), "--context", spareMember, "--cluster-name", edge)...).mustSucceed(t)
	t.Cleanup(func() {
		leave := []string{"unregister", edge, "--force", "--cluster-kubeconfig", shared.membersConfig(), "--cluster-context", spareMember}
		away.karmadactl(context.WithoutCancel(t.Context()), leave...).mustSucceed(t)
	})

	settings := newConfigMap("default", "settings", "1")
	createObjects(t, away, settings, selectAll(configMapSelector).propagationPolicy("default", edge))
	id := awaitConfigMapValue(t, spareMember, settings, "1")
	ends := map[string]func(){
		"2": func() {
			pid, err := away.processID(controlPlane)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			away.awaitProcessesEnded(t, stopTimeout)
		},
		"3": func() { runProgram(ctx, nil, "karmada", "down", "--data-dir", away.dir).mustSucceed(t) },
	}
	for value, end := range ends {
		end()
		if err := away.up(ctx); err != nil {
			t.Fatal(err)
		}
		away.changeSettings(t, value)
		if now := awaitConfigMapValue(t, spareMember, settings, value); now != id {
			t.Errorf("the ConfigMap was recreated: UID %s, before %s", now, id)
		}
	}
}
