package processnode

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramName(t *testing.T) {
	tests := map[string]struct {
		image, program string
		canRun         bool
	}{
		"with registry and tag":             {"docker.io/karmada/karmada-agent:v1.2.3", "karmada-agent", true},
		"a bare name":                       {"karmada-agent", "karmada-agent", true},
		"registry with a port":              {"localhost:5000/karmada-webhook", "karmada-webhook", true},
		"with a digest":                     {"karmada/karmada-agent@sha256:abc", "karmada-agent", true},
		"with a tag and a digest":           {"karmada/karmada-agent:v1@sha256:abc", "karmada-agent", true},
		"another name":                      {"docker.io/library/nginx:1.19", "nginx", false},
		"another name of karmada":           {"docker.io/karmada/etcd:3.6", "etcd", false},
		"only the prefix":                   {"karmada-:v1", "karmada-", false},
		"the prefix and another name":       {"karmada-shell", "karmada-shell", false},
		"a name that starts like a program": {"karmada-agent-evil", "karmada-agent-evil", false},
		"the program karmada":               {"karmada", "karmada", false},
		"a path to another program":         {"karmada-agent/../../bin/sh", "sh", false},
		"an empty image":                    {"", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if program, canRun := programName(test.image), CanRun(test.image); program != test.program || canRun != test.canRun {
				t.Errorf("%q has program %q, supported %t, want %q, %t", test.image, program, canRun, test.program, test.canRun)
			}
		})
	}
}

func TestProgramsAreOfThisRepository(t *testing.T) {
	for _, program := range Programs() {
		if _, err := os.Stat(filepath.Join("../../../cmd", program, "main.go")); err != nil {
			t.Errorf("%s is not a program of this repository: %v", program, err)
		}
	}
}

func TestCanRun(t *testing.T) {
	tests := map[string]struct {
		images []string
		want   bool
	}{
		"one program":                 {[]string{"karmada-agent"}, true},
		"two programs":                {[]string{"karmada-agent", "karmada-scheduler"}, true},
		"a program and another image": {[]string{"karmada-agent", "nginx"}, false},
		"no images":                   {nil, false},
		"the prefix in the directory": {[]string{"karmada-io/agent"}, false},
		"a program with a sidecar":    {[]string{"envoy", "karmada-agent"}, false},
		"an unknown program":          {[]string{"karmada-agent", "karmada-shell"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CanRun(test.images...); got != test.want {
				t.Errorf("%v: %t, want %t", test.images, got, test.want)
			}
		})
	}
}

func TestFindProgramInFirstDirectory(t *testing.T) {
	none, text, first, second := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for dir, mode := range map[string]os.FileMode{text: 0o600, first: 0o700, second: 0o700} {
		if err := os.WriteFile(filepath.Join(dir, "karmada-agent"), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	path, err := findProgramIn("karmada-agent", []string{"", ".", none, text, first, second})
	if want := filepath.Join(first, "karmada-agent"); err != nil || path != want {
		t.Errorf("found %q (%v), want %q", path, err, want)
	}
	_, err = findProgramIn("karmada-agent", []string{none, text})
	if !errors.Is(err, errProgramNotFound) || !strings.Contains(err.Error(), none) || !strings.Contains(err.Error(), text) {
		t.Errorf("the error %v does not list %s and %s", err, none, text)
	}
}

func TestFindProgramRejectsReplaceableFiles(t *testing.T) {
	tests := map[string]struct {
		make func(dir string) error
		want error
	}{
		"a world-writable file": {func(dir string) error {
			path := filepath.Join(dir, "karmada-agent")
			if err := os.WriteFile(path, nil, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o777) // that is the attack
		}, errReplaceable},
		"a link to a shell": {func(dir string) error {
			return os.Symlink("/bin/sh", filepath.Join(dir, "karmada-agent"))
		}, errProgramNotFound},
		"a link to another version of the program": {func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "karmada-agent-v2"), nil, 0o700); err != nil {
				return err
			}
			return os.Symlink("karmada-agent-v2", filepath.Join(dir, "karmada-agent"))
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := test.make(dir); err != nil {
				t.Fatal(err)
			}
			if path, err := findProgramIn("karmada-agent", []string{dir}); !errors.Is(err, test.want) {
				t.Errorf("found %q (%v), want error %v", path, err, test.want)
			}
		})
	}
}

// The name of one program is the beginning of the name of another program.
func TestFindProgramRejectsLinkToAnotherProgram(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "karmada-scheduler-estimator"), nil, 0o700), // it is a program
		os.Symlink("karmada-scheduler-estimator", filepath.Join(dir, "karmada-scheduler"))); err != nil {
		t.Fatal(err)
	}
	if path, err := findProgramIn("karmada-scheduler", []string{dir}); !errors.Is(err, errProgramNotFound) {
		t.Errorf("found %q, %v", path, err)
	}
}

func TestFindProgramIgnoresPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "karmada-agent"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv(ProgramsVariable, "")
	if path, err := FindProgram("karmada-agent"); !errors.Is(err, errProgramNotFound) {
		t.Errorf("found %q (%v)", path, err)
	}
	t.Setenv(ProgramsVariable, dir)
	if path, err := FindProgram("karmada-agent"); err != nil || filepath.Dir(path) != dir {
		t.Errorf("found %q (%v), want it in %s", path, err, dir)
	}
}

// TestProgramInstalledAsLinkRuns starts a program that is a link to a file with another name, and
// also runs it with exec.
func TestProgramInstalledAsLinkRuns(t *testing.T) {
	dir := t.TempDir()
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "karmada-linked-v2"), self, 0o700), // it is a program
		os.Symlink("karmada-linked-v2", filepath.Join(dir, "karmada-linked"))); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, dir)
	n.programs = append(n.programs, "karmada-linked")
	pod := testPod("linked", "wait")
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command = "karmada-linked", []string{"/bin/karmada-linked"}
	n.create(t, pod)
	n.await(t, "linked", "running", isRunning)
	c, ok := n.findPod(namespace, "linked").Container("main").(*container)
	if !ok {
		t.Fatal("the Pod has no container")
	}
	if err := c.execWithOutput(t.Context(), []string{"karmada-linked", "act:exit", "0"}, io.Discard); err != nil {
		t.Errorf("running the program with other arguments: %v", err)
	}
}
