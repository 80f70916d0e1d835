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

const patience = time.Minute

// hold plays a member of an earlier start, in the directory of an installation.
func hold(t *testing.T) (dir dataDir, path string, end func()) {
	t.Helper()
	dir = dataDir{t.TempDir()}
	path = dir.member("member1")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	end, err := dataDir{path}.lock()
	if err != nil {
		t.Fatal(err)
	}
	return dir, path, end
}

func TestAMemberWaitsForTheOneBeforeItToEnd(t *testing.T) {
	_, path, end := hold(t)
	taken := make(chan error, 1)
	go func() {
		release, err := takeOver(t.Context(), path, patience)
		if err == nil {
			release()
		}
		taken <- err
	}()
	select {
	case err := <-taken:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(2 * stopPollEvery):
	}
	end()
	if err := <-taken; err != nil {
		t.Errorf("the one before has ended: %v", err)
	}
}

func TestAMemberTellsWhichProcessDoesNotEnd(t *testing.T) {
	_, path, end := hold(t)
	defer end()
	_, err := takeOver(t.Context(), path, stopPollEvery)
	if want := "kill -9 " + strconv.Itoa(os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, without %q", err, want)
	}
}

func TestTheFirstMemberMakesItsDirectory(t *testing.T) {
	release, err := takeOver(t.Context(), filepath.Join(t.TempDir(), "members", "member1"), patience)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestAnInstallationIsBusyUntilItsMembersHaveEnded(t *testing.T) {
	dir, _, end := hold(t)
	if pid, err := dir.busy(); err != nil || pid != os.Getpid() {
		t.Errorf("while the member runs: process %d, %v", pid, err)
	}
	end()
	if pid, err := dir.busy(); err != nil || pid != 0 {
		t.Errorf("when it has ended: process %d, %v", pid, err)
	}
}

// saying is a member that tells this, and ends.
func saying(dir dataDir, text string) *child {
	return &child{
		options: memberOptions{Name: "member1"}, started: func() {},
		openLog: func() (*os.File, error) { return dir.openLog("member1") },
		command: func() *exec.Cmd { return exec.Command("sh", "-c", "printf '%s\\n' \"$0\" >&3; exit 1", text) },
	}
}
