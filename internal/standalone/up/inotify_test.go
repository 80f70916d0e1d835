package up

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newProc returns a directory in the form of /proc that contains the given limit and one process, which
// has the given number of inotify instances and another open file.
func newProc(t *testing.T, limit string, instances int) string {
	t.Helper()
	proc := t.TempDir()
	for _, directory := range []string{"sys/fs/inotify", "17/fd", "self/fd"} {
		if err := os.MkdirAll(filepath.Join(proc, directory), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(proc, "sys/fs/inotify/max_user_instances"), []byte(limit), 0o600); err != nil {
		t.Fatal(err)
	}
	status := fmt.Sprintf("Name:\tkarmada\nUid:\t%d\t0\t0\t0\n", os.Getuid())
	if err := os.WriteFile(filepath.Join(proc, "17/status"), []byte(status), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range instances + 1 {
		target := "anon_inode:inotify"
		if i == instances {
			target = "/dev/null"
		}
		if err := os.Symlink(target, filepath.Join(proc, "17/fd", string(rune('0'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

func TestCheckInotify(t *testing.T) {
	tests := map[string]struct {
		limit     string
		instances int
		needed    int
		want      string
	}{
		"enough":              {"8\n", 3, 5, ""},
		"one too few":         {"8\n", 4, 5, "fs.inotify.max_user_instances is 8, and processes of user"},
		"the number in use":   {"8\n", 4, 5, "use 4 instances, so 5 more are not available"},
		"the remedy":          {"8\n", 4, 5, "sudo sysctl fs.inotify.max_user_instances=1024"},
		"an unreadable limit": {"many", 4, 5, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := verifyInotifyLimitsOf(newProc(t, test.limit, test.instances), os.Getuid(), test.needed)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestInstancesOfOtherUsersDoNotCount(t *testing.T) {
	if err := verifyInotifyLimitsOf(newProc(t, "8", 8), os.Getuid()+1, 5); err != nil {
		t.Error(err)
	}
}

func TestSystemWithoutProcHasNoLimit(t *testing.T) {
	if err := verifyInotifyLimitsOf(filepath.Join(t.TempDir(), "none"), os.Getuid(), 5); err != nil {
		t.Error(err)
	}
}
