package processnode

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnImageHoldsTheProgramOfItsName(t *testing.T) {
	tests := map[string]struct {
		image, program string
		ours           bool
	}{
		"with registry and tag":         {"docker.io/karmada/karmada-agent:v1.2.3", "karmada-agent", true},
		"without anything":              {"karmada-agent", "karmada-agent", true},
		"from a registry with a port":   {"localhost:5000/karmada-webhook", "karmada-webhook", true},
		"with a digest":                 {"karmada/karmada-agent@sha256:abc", "karmada-agent", true},
		"with a tag and a digest":       {"karmada/karmada-agent:v1@sha256:abc", "karmada-agent", true},
		"of another name":               {"docker.io/library/nginx:1.19", "nginx", false},
		"of another name below karmada": {"docker.io/karmada/etcd:3.6", "etcd", false},
		"of a prefix and no more":       {"karmada-:v1", "karmada-", false},
		"of a prefix and another name":  {"karmada-shell", "karmada-shell", false},
		"of a name that begins as ours": {"karmada-agent-evil", "karmada-agent-evil", false},
		"of the program that has all":   {"karmada", "karmada", false},
		"of a path to another program":  {"karmada-agent/../../bin/sh", "sh", false},
		"of nothing":                    {"", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if program, ours := programOf(test.image), Runs(test.image); program != test.program || ours != test.ours {
				t.Errorf("%q holds %q, ours %t, want %q, %t", test.image, program, ours, test.program, test.ours)
			}
		})
	}
}

func TestOnlyProgramsOfThisRepositoryRun(t *testing.T) {
	for _, program := range Programs() {
		if _, err := os.Stat(filepath.Join("../../../cmd", program, "main.go")); err != nil {
			t.Errorf("%s is not built here: %v", program, err)
		}
	}
}

func TestAPodRunsIfAllItsImagesDo(t *testing.T) {
	tests := map[string]struct {
		images []string
		want   bool
	}{
		"one of ours":            {[]string{"karmada-agent"}, true},
		"two of ours":            {[]string{"karmada-agent", "karmada-scheduler"}, true},
		"one among others":       {[]string{"karmada-agent", "nginx"}, false},
		"none":                   {nil, false},
		"a directory's name":     {[]string{"karmada-io/agent"}, false},
		"ours with a sidecar":    {[]string{"envoy", "karmada-agent"}, false},
		"one that is not listed": {[]string{"karmada-agent", "karmada-shell"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Runs(test.images...); got != test.want {
				t.Errorf("%v: %t, want %t", test.images, got, test.want)
			}
		})
	}
}

func TestAProgramIsFoundInTheFirstDirectoryThatHasIt(t *testing.T) {
	none, text, first, second := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for dir, mode := range map[string]os.FileMode{text: 0o600, first: 0o700, second: 0o700} {
		if err := os.WriteFile(filepath.Join(dir, "karmada-agent"), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	path, err := findIn("karmada-agent", []string{"", ".", none, text, first, second})
	if want := filepath.Join(first, "karmada-agent"); err != nil || path != want {
		t.Errorf("found %q (%v), want %q", path, err, want)
	}
	_, err = findIn("karmada-agent", []string{none, text})
	if !errors.Is(err, errNoProgram) || !strings.Contains(err.Error(), none) || !strings.Contains(err.Error(), text) {
		t.Errorf("the error %v does not tell that there is none in %s and %s", err, none, text)
	}
}

func TestAProgramThatOthersCanReplaceIsRefused(t *testing.T) {
	tests := map[string]struct {
		make func(dir string) error
		want error
	}{
		"a file that everybody may write": {func(dir string) error {
			path := filepath.Join(dir, "karmada-agent")
			if err := os.WriteFile(path, nil, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o777) //nolint:gosec // that is the attack
		}, errWritable},
		"a link to a shell": {func(dir string) error {
			return os.Symlink("/bin/sh", filepath.Join(dir, "karmada-agent"))
		}, errNoProgram},
		"a link to another version of it": {func(dir string) error {
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
			if path, err := findIn("karmada-agent", []string{dir}); !errors.Is(err, test.want) {
				t.Errorf("found %q (%v), want error %v", path, err, test.want)
			}
		})
	}
}

func TestProgramsAreNotLookedForInThePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "karmada-agent"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv(ProgramsVariable, "")
	if path, err := Find("karmada-agent"); !errors.Is(err, errNoProgram) {
		t.Errorf("found %q (%v)", path, err)
	}
	t.Setenv(ProgramsVariable, dir)
	if path, err := Find("karmada-agent"); err != nil || filepath.Dir(path) != dir {
		t.Errorf("found %q (%v), want it in %s", path, err, dir)
	}
}

// TestAProgramThatIsInstalledAsALinkRuns starts one whose file has another name, and
// runs it once more in its Pod.
func TestAProgramThatIsInstalledAsALinkRuns(t *testing.T) {
	dir := t.TempDir()
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "karmada-linked-v2"), self, 0o700), //nolint:gosec // it is a program
		os.Symlink("karmada-linked-v2", filepath.Join(dir, "karmada-linked"))); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, dir)
	n.programs = append(n.programs, "karmada-linked")
	pod := testPod("linked", "wait")
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command = "karmada-linked", []string{"/bin/karmada-linked"}
	n.create(t, pod)
	n.await(t, "linked", "running", running)
	c, ok := n.hosted(namespace, "linked").Container("main").(*container)
	if !ok {
		t.Fatal("it has no container")
	}
	if err := c.exec(t.Context(), []string{"karmada-linked", "act:exit", "0"}, io.Discard); err != nil {
		t.Errorf("running it with other arguments: %v", err)
	}
}
