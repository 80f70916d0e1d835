package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// awaitConfigMapValue waits until a member of the installation has a ConfigMap with a value.
func (i *installation) awaitConfigMapValue(t *testing.T, cluster, name, value string) types.UID {
	t.Helper()
	found := &corev1.ConfigMap{}
	eventually(t, name+" "+value+" in "+cluster, func(ctx context.Context) error {
		*found = corev1.ConfigMap{}
		if err := i.members[cluster].Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, found); err != nil {
			return err
		}
		if found.Data["key"] != value {
			return fmt.Errorf("its value is %q", found.Data["key"])
		}
		return nil
	})
	return found.UID
}

// runKarmada runs a karmada command with the data directory.
func (i *installation) runKarmada(ctx context.Context, command string, args ...string) commandResult {
	return runProgram(ctx, nil, "karmada", append([]string{command, "--data-dir", i.dir}, args...)...)
}

// TestBackupAndRestore follows docs/backup.md: it creates a backup, changes objects,
// restores and confirms, with one member in push mode and one in pull mode.
func TestBackupAndRestore(t *testing.T) {
	i := &installation{dir: filepath.Join(t.TempDir(), "backed-up")}
	t.Cleanup(i.remove)
	ctx, cancel := context.WithTimeout(t.Context(), 2*startTimeout)
	defer cancel()
	if err := i.up(ctx, "--members", "2", "--pull-members", "1", "--nodes-per-member", "1"); err != nil {
		t.Fatal(err)
	}
	pushAndPull := []string{member1, member2}
	createObject := func(object client.Object) {
		t.Helper()
		if err := i.karmada.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	createObject(selectAll(configMapSelector).propagationPolicy("default", pushAndPull...))
	createObject(newConfigMap("default", "settings", "old"))
	for _, name := range pushAndPull {
		i.awaitConfigMapValue(t, name, "settings", "old")
	}

	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	i.runKarmada(ctx, "restore", "--confirm").mustFail(t, 1, "no restore of the control plane waits for confirmation")
	i.runKarmada(ctx, "backup", file).mustSucceed(t)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the backup: %v, %v", info, err)
	}
	i.runKarmada(ctx, "backup", file).mustFail(t, 1, "a file of that name exists already")
	i.runKarmada(ctx, "restore", file).mustFail(t, 1, "another karmada process uses it", "down --data-dir")

	i.changeSettings(t, "new")
	createObject(newConfigMap("default", "late", "1"))
	lateUIDs := map[string]types.UID{}
	for _, name := range pushAndPull {
		i.awaitConfigMapValue(t, name, "settings", "new")
		lateUIDs[name] = i.awaitConfigMapValue(t, name, "late", "1")
	}
	i.runKarmada(ctx, "down").mustSucceed(t)
	i.runKarmada(ctx, "backup").mustFail(t, 1, "not running", "up --detach")
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(damaged, []byte("no backup"), 0o600); err != nil {
		t.Fatal(err)
	}
	i.runKarmada(ctx, "restore", damaged).mustFail(t, 1, "damaged")
	restored := i.runKarmada(ctx, "restore", file)
	restored.mustSucceed(t)
	if before, err := filepath.Glob(filepath.Join(i.dir, "control-plane.before-restore-*", "etcd")); err != nil || len(before) != 1 || !strings.Contains(restored.stderr, filepath.Dir(before[0])) {
		t.Errorf("the previous data is in %v, %v:\n%s", before, err, restored.stderr)
	}

	if err := i.up(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range pushAndPull {
		i.awaitConfigMapValue(t, name, "settings", "old")
	}
	status := i.runKarmada(ctx, "status")
	if !strings.Contains(status.stdout, "restored from a backup of") || !strings.Contains(status.stdout, "not confirmed") {
		t.Errorf("status does not report the restore:\n%s", status.stdout)
	}
	i.awaitRestoreReport(t, pushAndPull)
	if err := i.karmada.Delete(ctx, newConfigMap("default", "settings", "")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "held deletions", func(ctx context.Context) error {
		report := i.runKarmada(ctx, "restore", "--report").stdout
		if strings.Count(report, "deletion held") != len(pushAndPull) {
			return errors.New(report)
		}
		return nil
	})
	for _, name := range pushAndPull {
		i.awaitConfigMapValue(t, name, "settings", "old")
	}
	i.runKarmada(ctx, "restore", "--confirm").mustSucceed(t)
	for _, name := range pushAndPull {
		eventually(t, "deletion of the settings in "+name, func(ctx context.Context) error {
			return checkAbsent(ctx, i.members[name], newConfigMap("default", "settings", ""))
		})
		if now := i.awaitConfigMapValue(t, name, "late", "1"); now != lateUIDs[name] {
			t.Errorf("%s: the object without a Work was recreated", name)
		}
	}
	createObject(newConfigMap("default", "fresh", "1"))
	for _, name := range pushAndPull {
		i.awaitConfigMapValue(t, name, "fresh", "1")
	}
	if status := i.runKarmada(ctx, "status"); strings.Contains(status.stdout, "restored") {
		t.Errorf("status still reports the restore:\n%s", status.stdout)
	}
}

// awaitRestoreReport waits until the report lists, for each member, the object that was
// created after the backup.
func (i *installation) awaitRestoreReport(t *testing.T, clusters []string) {
	t.Helper()
	eventually(t, "the restore report", func(ctx context.Context) error {
		answer := i.runKarmada(ctx, "restore", "--report", "-o", "json")
		var report struct {
			Clusters []struct {
				Cluster, Failure string
				Differences      []struct {
					Difference string
					Object     struct{ Name string }
				}
			}
		}
		if err := json.Unmarshal([]byte(answer.stdout), &report); err != nil {
			return fmt.Errorf("%w: %s", err, answer.stderr)
		}
		if len(report.Clusters) != len(clusters) {
			return fmt.Errorf("the clusters are %+v", report.Clusters)
		}
		for _, each := range report.Clusters {
			if len(each.Differences) != 1 || each.Differences[0].Difference != "no Work wants it" || each.Differences[0].Object.Name != "late" || each.Failure != "" {
				return fmt.Errorf("the differences are %+v", each)
			}
		}
		return nil
	})
}
