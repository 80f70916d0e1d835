package up

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const timeout = time.Minute

// lockMemberDir locks a member's directory, as an earlier start's process does.
func lockMemberDir(t *testing.T) (dir dataDir, path string, release func()) {
	t.Helper()
	dir = dataDir{t.TempDir()}
	path = dir.memberDir("member1")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	release, err := dataDir{path}.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dir, path, release
}

func TestMemberWaitsForEarlierProcess(t *testing.T) {
	_, path, end := lockMemberDir(t)
	taken := make(chan error, 1)
	go func() {
		release, err := acquireMemberDir(t.Context(), path, timeout)
		if err == nil {
			release()
		}
		taken <- err
	}()
	select {
	case err := <-taken:
		t.Fatalf("the member did not wait: %v", err)
	case <-time.After(2 * stopPollInterval):
	}
	end()
	if err := <-taken; err != nil {
		t.Errorf("after the end of the earlier process: %v", err)
	}
}

func TestMemberReportsEarlierProcess(t *testing.T) {
	_, path, end := lockMemberDir(t)
	defer end()
	_, err := acquireMemberDir(t.Context(), path, stopPollInterval)
	if want := "kill -9 " + strconv.Itoa(os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want one with %q", err, want)
	}
}

func TestMemberCreatesItsDirectory(t *testing.T) {
	release, err := acquireMemberDir(t.Context(), filepath.Join(t.TempDir(), "members", "member1"), timeout)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestBusyProcessIncludesMembers(t *testing.T) {
	dir, _, end := lockMemberDir(t)
	if pid, err := dir.busyProcess(t.Context()); err != nil || pid != os.Getpid() {
		t.Errorf("while the member runs the busy process is %d, %v", pid, err)
	}
	end()
	if pid, err := dir.busyProcess(t.Context()); err != nil || pid != 0 {
		t.Errorf("after its end the busy process is %d, %v", pid, err)
	}
}

// supervisorOf returns the supervisor of a process that writes one event and then ends.
func supervisorOf(dir dataDir, eventJSON string) *memberSupervisor {
	return &memberSupervisor{
		options: memberOptions{Name: "member1"}, onStarted: func() {},
		openLog:    func() (*os.File, error) { return dir.openLog("member1") },
		newCommand: func() *exec.Cmd { return exec.Command("sh", "-c", "printf '%s\\n' \"$0\" >&3; exit 1", eventJSON) },
	}
}
