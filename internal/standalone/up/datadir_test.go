package up

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newDataDir returns a data directory that contains the given files.
func newDataDir(t *testing.T, files ...string) dataDir {
	t.Helper()
	dir := dataDir{t.TempDir()}
	for _, name := range files {
		path := filepath.Join(dir.path, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCreateRejectsForeignDirectory(t *testing.T) {
	tests := map[string]struct {
		files []string
		want  string
	}{
		"an empty directory":                    {},
		"the directory of an earlier start":     {files: []string{"state.json", "control-plane/pki/ca.crt", "notes.txt"}},
		"a directory without state file":        {files: []string{"control-plane/pki/ca.crt", "lock"}},
		"the directory of an interrupted start": {files: []string{"lock", "logs/karmada.log", "state.json.new"}},
		"a home directory":                      {files: []string{".profile", "logs/mine.log"}, want: "such as .profile"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := newDataDir(t, test.files...)
			err := dir.create()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	file := filepath.Join(newDataDir(t, "file").path, "file")
	if err := (dataDir{file}).create(); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a file is accepted as a directory: %v", err)
	}
}

func alwaysAllowed() error { return nil }

func TestRemoveKeepsForeignFiles(t *testing.T) {
	ours := []string{"state.json", "lock", "processes.json.new", "karmada-apiserver.config", "members.config", "audit/audit.log", "control-plane/etcd/member/wal", "members/member1/lock", "logs/karmada.log"}
	dir := newDataDir(t, ours...)
	if others, err := dir.remove(t.Context(), alwaysAllowed); err != nil || len(others) > 0 {
		t.Errorf("the kept files are %q (%v)", others, err)
	}
	if _, err := os.Stat(dir.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory still exists (%v)", err)
	}

	dir = newDataDir(t, append(ours, "thesis/chapter1.txt", "thesis/lock")...)
	if others, err := dir.remove(t.Context(), alwaysAllowed); err != nil || !slices.Equal(others, []string{"thesis"}) {
		t.Errorf("the kept files are %q (%v)", others, err)
	}
	var left []string
	err := filepath.WalkDir(dir.path, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			left = append(left, strings.TrimPrefix(path, dir.path+"/"))
		}
		return err
	})
	if diff := cmp.Diff([]string{"thesis/chapter1.txt", "thesis/lock"}, left); err != nil || diff != "" {
		t.Errorf("files (-want +got) (%v):\n%s", err, diff)
	}

	dir = newDataDir(t, "logs/mine.log")
	if _, err := dir.remove(t.Context(), alwaysAllowed); !errors.Is(err, errNoKarmadaData) {
		t.Errorf("a directory of another program is removed: %v", err)
	}
	dir = newDataDir(t, ours...)
	release, err := dir.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := dir.remove(t.Context(), alwaysAllowed); !errors.Is(err, errInUse) {
		t.Errorf("a directory in use is removed: %v", err)
	}
}

// Between the times at which a process acquires the lock and writes its ID, the lock file contains an
// earlier process's ID. This ID must not be returned, because the caller would stop the wrong process.
func TestRunningProcessIgnoresStaleID(t *testing.T) {
	bystander := exec.CommandContext(t.Context(), "sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = bystander.Process.Kill(), bystander.Wait() }()
	dir := dataDir{t.TempDir()}
	release, err := dir.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if pid, err := dir.runningProcess(t.Context()); pid != os.Getpid() || err != nil {
		t.Errorf("the running process is %d (%v)", pid, err)
	}
	if err := os.WriteFile(dir.lockFile(), []byte(strconv.Itoa(bystander.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid, err := dir.runningProcess(t.Context()); pid != 0 || !errors.Is(err, errUnknownHolder) {
		t.Errorf("process %d is returned as the holder (%v)", pid, err)
	}
}

func TestLockWaitsForProbe(t *testing.T) {
	dir := newDataDir(t, "lock")
	looking, err := os.Open(dir.lockFile())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = looking.Close() }()
	if err := syscall.Flock(int(looking.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*lockProbeInterval, func() { _ = syscall.Flock(int(looking.Fd()), syscall.LOCK_UN) })
	release, err := dir.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// If a user interrupts a command, the command must not advise stopping another process.
func TestLockWaitsEndWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		held int
		call func(dataDir) error
	}{
		"the lock":            {syscall.LOCK_SH, func(dir dataDir) error { _, err := dir.lock(ctx); return err }},
		"the process ID":      {syscall.LOCK_EX, func(dir dataDir) error { _, err := dir.runningProcess(ctx); return err }},
		"a busy process":      {syscall.LOCK_EX, func(dir dataDir) error { _, err := dir.busyProcess(ctx); return err }},
		"an unused directory": {syscall.LOCK_EX, func(dir dataDir) error { return dir.ensureUnused(ctx) }},
	}
	for name, test := range tests {
		dir := newDataDir(t, "lock")
		other, err := os.Open(dir.lockFile())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		if err := syscall.Flock(int(other.Fd()), test.held); err != nil {
			t.Fatal(err)
		}
		if err := test.call(dir); !errors.Is(err, context.Canceled) || errors.Is(err, errInUse) {
			t.Errorf("waiting for %s: %v", name, err)
		}
	}
}

func TestRotateLog(t *testing.T) {
	dir := newDataDir(t)
	if err := dir.create(); err != nil {
		t.Fatal(err)
	}
	log, err := dir.openLog("karmada")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	write := func(text string) {
		t.Helper()
		if _, err := log.WriteString(text); err != nil {
			t.Fatal(err)
		}
		rotateLog(log.Name(), 8)
	}
	expectContent := func(path, want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, want %q (%v)", filepath.Base(path), got, want, err)
		}
	}
	write("1234567\n")
	expectContent(log.Name(), "1234567\n")
	write("8\n")
	expectContent(log.Name(), "")
	expectContent(log.Name()+oldLogSuffix, "1234567\n8\n")
	write("9\n")
	expectContent(log.Name(), "9\n")
	write("0123456\n")
	expectContent(log.Name()+oldLogSuffix, "9\n0123456\n")
	// If the old log cannot be kept, for example because the disk is full, it is lost.
	if err := os.Remove(log.Name() + oldLogSuffix); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(log.Name()+oldLogSuffix, "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("too much to keep\n")
	expectContent(log.Name(), "")
}

func TestStartOverAdvice(t *testing.T) {
	dir := dataDir{"/data/one"}
	if got, want := dir.startOverAdvice(), "`karmada down --purge --force --data-dir /data/one`"; !strings.Contains(got, want) {
		t.Errorf("the advice for the control plane is %q, want %q in it", got, want)
	}
	got := dataDirOfMember(dir.memberDir("member2")).startOverMemberAdvice("member2")
	for _, want := range []string{"remove /data/one/members/member2,", "--data-dir /data/one`", "`karmadactl unjoin member2 --force`", "unregister member2 --force --cluster-kubeconfig=/data/one/members.config"} {
		if !strings.Contains(got, want) {
			t.Errorf("the advice for a member is %q, want %q in it", got, want)
		}
	}
	if strings.Contains(got, "--purge") {
		t.Errorf("the advice for a member is %q, which removes the control plane", got)
	}
}
