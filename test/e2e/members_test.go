package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// TestMembersChangeWhileKarmadaRuns adds and removes members of an installation of its own, reads the
// metrics of its processes, and evicts an object by a taint, which needs no flag.
func TestMembersChangeWhileKarmadaRuns(t *testing.T) {
	const edge, setting = "edge", "--extra-config=karmada-controller-manager.graceful-eviction-timeout=1m"
	i := &installation{dir: filepath.Join(t.TempDir(), "growing")}
	t.Cleanup(i.remove)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := i.up(ctx, "--members", "1", setting); err != nil {
		t.Fatal(err)
	}
	pid, err := i.processID(member1)
	if err != nil {
		t.Fatal(err)
	}
	i.member(ctx, "add", edge, "--region", "moon").mustSucceed(t)
	if err := i.connectClients(); err != nil {
		t.Fatal(err)
	}
	runProgram(ctx, nil, "karmada", "up", "--data-dir", i.dir, "--members", "3").mustSucceed(t)
	if err := i.awaitClustersReady(ctx, member1, edge, member2); err != nil {
		t.Fatal(err)
	}
	i.member(ctx, "add", edge).mustFail(t, 1, `already a member "edge"`)
	i.member(ctx, "add", "A_b").mustFail(t, 2, `cluster name "A_b"`)
	i.member(ctx, "add", "karmada-apiserver").mustFail(t, 2, "reserved for Karmada")
	i.member(ctx, "remove", "absent").mustFail(t, 1, `there is no member "absent"`, member1)
	runProgram(ctx, nil, "karmada", "up", "--data-dir", i.dir, "--members", "1").mustFail(t, 1, "karmada member remove member2")
	runProgram(ctx, nil, "karmada", "up", "--data-dir", i.dir, "--members", "4", "--failover=false").mustFail(t, 2, "--failover cannot change")

	settings := newConfigMap("default", "settings", "1")
	createObjects(t, i, settings, selectAll(configMapSelector).propagationPolicy("default", member1, edge))
	i.awaitObject(t, edge, settings)
	i.karmadactl(ctx, "taint", "clusters", edge, "power=off:NoExecute").mustSucceed(t)
	eventually(t, "the eviction from the tainted member", func(ctx context.Context) error {
		return checkAbsent(ctx, i.members[edge], settings)
	})
	i.awaitObject(t, member1, settings)
	i.checkMetrics(t, i.karmadaConfig(), "karmada-apiserver", "eviction_processing_total", "apiserver_request_total", "controller_runtime_reconcile_total")
	i.checkMetrics(t, i.membersConfig(), member1, "certwatcher_read_certificate_total", "apiserver_request_total")

	i.member(ctx, "remove", edge).mustSucceed(t)
	if err := checkAbsent(ctx, i.karmada, &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", edge)}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(i.dir, "members", edge)); !os.IsNotExist(err) {
		t.Errorf("the data of the removed member exists (%v)", err)
	}
	if now, err := i.processID(member1); err != nil || now != pid {
		t.Errorf("the process of member1 is %d (%v), and was %d before the changes", now, err, pid)
	}
	i.checkRestartKeeps(t, setting, member1, member2)
}

func (i *installation) member(ctx context.Context, args ...string) commandResult {
	return runProgram(ctx, nil, "karmada", append(append([]string{"member"}, args...), "--data-dir", i.dir)...)
}

func (i *installation) awaitObject(t *testing.T, member string, object client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s in %s", object.GetName(), member), func(ctx context.Context) error {
		return i.members[member].Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	})
}

// checkMetrics checks that the address of a process serves metrics to its administrator only.
func (i *installation) checkMetrics(t *testing.T, kubeconfig, name string, metrics ...string) {
	t.Helper()
	get := func(flags ...string) commandResult {
		command, err := newKubectl(t.Context(), kubeconfig, append([]string{"--context", name, "get", "--raw", "/metrics"}, flags...)...)
		if err != nil {
			t.Fatal(err)
		}
		return runCommand(command)
	}
	served := get()
	served.mustSucceed(t)
	for _, metric := range metrics {
		if !strings.Contains(served.stdout, "\n"+metric) {
			t.Errorf("the metrics of %s do not contain %s", name, metric)
		}
	}
	get("--as", "nobody").mustFail(t, 1, "Forbidden")
}

// checkRestartKeeps stops and starts the installation without flags, and checks that it has the same
// setting and members.
func (i *installation) checkRestartKeeps(t *testing.T, setting string, members ...string) {
	t.Helper()
	runProgram(t.Context(), nil, "karmada", "down", "--data-dir", i.dir).mustSucceed(t)
	again := runProgram(t.Context(), nil, "karmada", "up", "--detach", "--data-dir", i.dir)
	again.mustSucceed(t)
	status := runProgram(t.Context(), nil, "karmada", "status", "--data-dir", i.dir)
	status.mustSucceed(t)
	for text, want := range map[string]string{again.stderr: "Settings of the last start: " + setting, status.stderr: "Started with: " + setting} {
		if !strings.Contains(text, want) {
			t.Errorf("the output after the restart does not contain %q:\n%s", want, text)
		}
	}
	for _, name := range members {
		if !strings.Contains(status.stdout, "cluster "+name+" (process") {
			t.Errorf("member %s does not run after the restart:\n%s", name, status.stdout)
		}
	}
	if rows := strings.Count(status.stdout, "\n") - 2; rows != len(members) {
		t.Errorf("%d members run after the restart, want %d:\n%s", rows, len(members), status.stdout)
	}
}
