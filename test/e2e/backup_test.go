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

// has waits until a member of the installation has a ConfigMap with a value.
func (i *installation) has(t *testing.T, cluster, name, value string) types.UID {
	t.Helper()
	found := &corev1.ConfigMap{}
	eventually(t, name+" "+value+" in "+cluster, func(ctx context.Context) error {
		*found = corev1.ConfigMap{}
		if err := i.members[cluster].Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, found); err != nil {
			return err
		}
		if found.Data["key"] != value {
			return fmt.Errorf("it has %q", found.Data["key"])
		}
		return nil
	})
	return found.UID
}

// karmada runs a command of karmada on the data directory.
func (i *installation) karmadaCommand(ctx context.Context, command string, args ...string) result {
	return invoke(ctx, nil, "karmada", append([]string{command, "--data-dir", i.dir}, args...)...)
}

// TestABackupIsRestoredAsADocumentSays backs up, changes, restores and confirms, with a
// member that is pushed to and one that pulls.
func TestABackupIsRestoredAsADocumentSays(t *testing.T) {
	i := &installation{dir: filepath.Join(t.TempDir(), "backed-up")}
	t.Cleanup(i.remove)
	ctx, cancel := context.WithTimeout(t.Context(), 2*startPatience)
	defer cancel()
	if err := i.up(ctx, "--members", "2", "--pull-members", "1", "--nodes-per-member", "1"); err != nil {
		t.Fatal(err)
	}
	both := []string{member1, member2}
	put := func(object client.Object) {
		t.Helper()
		if err := i.karmada.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	put(every(configMaps).to("default", both...))
	put(configMap("default", "settings", "old"))
	for _, name := range both {
		i.has(t, name, "settings", "old")
	}

	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	i.karmadaCommand(ctx, "restore", "--confirm").mustFail(t, 1, "no restore of the control plane waits for confirmation")
	i.karmadaCommand(ctx, "backup", file).mustSucceed(t)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the backup: %v, %v", info, err)
	}
	i.karmadaCommand(ctx, "backup", file).mustFail(t, 1, "a file of that name exists already")
	i.karmadaCommand(ctx, "restore", file).mustFail(t, 1, "another karmada process uses it", "down --data-dir")

	i.changeSettings(t, "new")
	put(configMap("default", "late", "1"))
	kept := map[string]types.UID{}
	for _, name := range both {
		i.has(t, name, "settings", "new")
		kept[name] = i.has(t, name, "late", "1")
	}
	i.karmadaCommand(ctx, "down").mustSucceed(t)
	i.karmadaCommand(ctx, "backup").mustFail(t, 1, "not running", "up --detach")
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(damaged, []byte("no backup"), 0o600); err != nil {
		t.Fatal(err)
	}
	i.karmadaCommand(ctx, "restore", damaged).mustFail(t, 1, "damaged")
	restored := i.karmadaCommand(ctx, "restore", file)
	restored.mustSucceed(t)
	if before, err := filepath.Glob(filepath.Join(i.dir, "control-plane.before-restore-*", "etcd")); err != nil || len(before) != 1 || !strings.Contains(restored.stderr, filepath.Dir(before[0])) {
		t.Errorf("the data of before is kept in %v, %v:\n%s", before, err, restored.stderr)
	}

	if err := i.up(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range both {
		i.has(t, name, "settings", "old")
	}
	status := i.karmadaCommand(ctx, "status")
	if !strings.Contains(status.stdout, "restored from a backup of") || !strings.Contains(status.stdout, "not confirmed") {
		t.Errorf("status does not tell of the restore:\n%s", status.stdout)
	}
	i.mustReport(t, both)
	if err := i.karmada.Delete(ctx, configMap("default", "settings", "")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "deletions that wait", func(ctx context.Context) error {
		report := i.karmadaCommand(ctx, "restore", "--report").stdout
		if strings.Count(report, "deletion held") != len(both) {
			return errors.New(report)
		}
		return nil
	})
	for _, name := range both {
		i.has(t, name, "settings", "old")
	}
	i.karmadaCommand(ctx, "restore", "--confirm").mustSucceed(t)
	for _, name := range both {
		eventually(t, "end of the settings in "+name, func(ctx context.Context) error {
			return gone(ctx, i.members[name], configMap("default", "settings", ""))
		})
		if now := i.has(t, name, "late", "1"); now != kept[name] {
			t.Errorf("%s: what no Work wants was replaced", name)
		}
	}
	put(configMap("default", "fresh", "1"))
	for _, name := range both {
		i.has(t, name, "fresh", "1")
	}
	if status := i.karmadaCommand(ctx, "status"); strings.Contains(status.stdout, "restored") {
		t.Errorf("status still tells of the restore:\n%s", status.stdout)
	}
}

// mustReport demands that the report names what came after the backup in each member.
func (i *installation) mustReport(t *testing.T, clusters []string) {
	t.Helper()
	eventually(t, "the report", func(ctx context.Context) error {
		answer := i.karmadaCommand(ctx, "restore", "--report", "-o", "json")
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
			return fmt.Errorf("clusters %+v", report.Clusters)
		}
		for _, each := range report.Clusters {
			if len(each.Differences) != 1 || each.Differences[0].Difference != "no Work wants it" || each.Differences[0].Object.Name != "late" || each.Failure != "" {
				return fmt.Errorf("differences %+v", each)
			}
		}
		return nil
	})
}
