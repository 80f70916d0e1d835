package up

import (
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

// made is a data directory with these files in it.
func made(t *testing.T, files ...string) dataDir {
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

func TestOnlyADirectoryOfOursIsTaken(t *testing.T) {
	tests := map[string]struct {
		files []string
		want  string
	}{
		"an empty one":                     {},
		"one of an earlier start":          {files: []string{"state.json", "control-plane/pki/ca.crt", "notes.txt"}},
		"one whose state somebody removed": {files: []string{"control-plane/pki/ca.crt", "lock"}},
		"one of a start that was cut off":  {files: []string{"lock", "logs/karmada.log", "state.json.new"}},
		"a home":                           {files: []string{".profile", "logs/mine.log"}, want: "such as .profile"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := made(t, test.files...)
			err := dir.create()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	file := filepath.Join(made(t, "file").path, "file")
	if err := (dataDir{file}).create(); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a file is taken for a directory: %v", err)
	}
}

func anyway() error { return nil }

func TestPurgeRemovesWhatIsOursAndNothingElse(t *testing.T) {
	ours := []string{"state.json", "lock", "processes.json.new", "karmada-apiserver.config", "members.config", "audit/audit.log", "control-plane/etcd/member/wal", "members/member1/lock", "logs/karmada.log"}
	dir := made(t, ours...)
	if others, err := dir.remove(anyway); err != nil || len(others) > 0 {
		t.Errorf("there stay %q (%v)", others, err)
	}
	if _, err := os.Stat(dir.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory stays (%v)", err)
	}

	dir = made(t, append(ours, "thesis/chapter1.txt", "thesis/lock")...)
	if others, err := dir.remove(anyway); err != nil || !slices.Equal(others, []string{"thesis"}) {
		t.Errorf("there stay %q (%v)", others, err)
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

	dir = made(t, "logs/mine.log")
	if _, err := dir.remove(anyway); !errors.Is(err, errNotOurs) {
		t.Errorf("a directory of somebody else is removed: %v", err)
	}
	dir = made(t, ours...)
	release, err := dir.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := dir.remove(anyway); !errors.Is(err, errInUse) {
		t.Errorf("a directory in use is removed: %v", err)
	}
}

// A process that has taken the lock and not yet said so must not be mistaken for one
// of before, which somebody would stop.
func TestTheHolderOfALockIsNobodyElse(t *testing.T) {
	bystander := exec.CommandContext(t.Context(), "sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = bystander.Process.Kill(), bystander.Wait() }()
	dir := dataDir{t.TempDir()}
	release, err := dir.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if pid, err := dir.running(); pid != os.Getpid() || err != nil {
		t.Errorf("process %d runs on it (%v)", pid, err)
	}
	if err := os.WriteFile(dir.lockFile(), []byte(strconv.Itoa(bystander.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid, err := dir.running(); pid != 0 || !errors.Is(err, errNobody) {
		t.Errorf("process %d is told to be the holder (%v)", pid, err)
	}
}

func TestAStartWaitsForThoseWhoOnlyLook(t *testing.T) {
	dir := made(t, "lock")
	looking, err := os.Open(dir.lockFile())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = looking.Close() }()
	if err := syscall.Flock(int(looking.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*lookPause, func() { _ = syscall.Flock(int(looking.Fd()), syscall.LOCK_UN) })
	release, err := dir.lock()
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestALogThatGrowsBeginsAnew(t *testing.T) {
	dir := made(t)
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
		turnLog(log.Name(), 8)
	}
	holds := func(path, want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q, want %q (%v)", filepath.Base(path), got, want, err)
		}
	}
	write("1234567\n")
	holds(log.Name(), "1234567\n")
	write("8\n")
	holds(log.Name(), "")
	holds(log.Name()+former, "1234567\n8\n")
	write("9\n")
	holds(log.Name(), "9\n")
	write("0123456\n")
	holds(log.Name()+former, "9\n0123456\n")
	// What cannot be kept is given up, for the disk may be full.
	if err := os.Remove(log.Name() + former); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(log.Name()+former, "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("too much to keep\n")
	holds(log.Name(), "")
}

func TestALostKeyCostsOnlyWhatItEncrypts(t *testing.T) {
	dir := dataDir{"/data/one"}
	if got, want := dir.startOver(), "`karmada down --purge --force --data-dir /data/one`"; !strings.Contains(got, want) {
		t.Errorf("of the control plane it says %q, not %q", got, want)
	}
	got := dataDirOfMember(dir.member("member2")).startOverMember("member2")
	for _, want := range []string{"remove /data/one/members/member2,", "--data-dir /data/one`", "`karmadactl unjoin member2 --force`", "unregister member2 --force --cluster-kubeconfig=/data/one/members.config"} {
		if !strings.Contains(got, want) {
			t.Errorf("of a member it says %q, not %q", got, want)
		}
	}
	if strings.Contains(got, "--purge") {
		t.Errorf("of a member it says %q, which removes the control plane", got)
	}
}
