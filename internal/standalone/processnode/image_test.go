package processnode

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestContainerSelectsProgram(t *testing.T) {
	tests := map[string]struct {
		image, command string
		// name and file are empty if the node must not run the container.
		name, file string
	}{
		"with registry and tag":              {image: "docker.io/karmada/karmada-agent:v1.2.3", name: "karmada-agent", file: "karmada-agent"},
		"a bare name":                        {image: "karmada-agent", name: "karmada-agent", file: "karmada-agent"},
		"registry with a port":               {image: "localhost:5000/karmada-webhook", name: "karmada-webhook", file: "karmada-webhook"},
		"with a digest":                      {image: "karmada/karmada-agent@sha256:abc", name: "karmada-agent", file: "karmada-agent"},
		"with a tag and a digest":            {image: "karmada/karmada-agent:v1@sha256:abc", name: "karmada-agent", file: "karmada-agent"},
		"an aggregated API server":           {image: "karmada/karmada-aggregated-apiserver", name: "karmada-aggregated-apiserver", file: "karmada-aggregated-apiserver"},
		"all programs, a component":          {image: "docker.io/karmada/karmada:v1", command: "/bin/karmada-scheduler", name: "karmada-scheduler", file: "karmada"},
		"all programs, a program in $PATH":   {image: "docker.io/karmada/karmada:v1", command: "kube-apiserver", name: "kube-apiserver", file: "karmada"},
		"all programs, etcd":                 {image: "mirror.example/karmada@sha256:abc", command: "/usr/local/bin/etcd", name: "etcd", file: "karmada"},
		"all programs, karmadactl":           {image: "karmada", command: "/bin/karmadactl", name: "karmadactl", file: "karmada"},
		"all programs, karmada-apiserver":    {image: "karmada", command: "karmada-apiserver", name: "karmada-apiserver", file: "karmada"},
		"all programs without a command":     {image: "karmada"},
		"all programs, another command":      {image: "karmada", command: "/bin/sh"},
		"all programs, karmada up":           {image: "karmada", command: "karmada"},
		"kube-apiserver of Kubernetes":       {image: "registry.k8s.io/kube-apiserver:v1.36.2", command: "kube-apiserver", name: "kube-apiserver", file: "karmada"},
		"etcd of Kubernetes":                 {image: "registry.k8s.io/etcd:3.6.0-0", command: "/usr/local/bin/etcd", name: "etcd", file: "karmada"},
		"etcd of another project":            {image: "docker.io/bitnami/etcd:3.6"},
		"etcd of Kubernetes, another one":    {image: "registry.k8s.io/etcd:3.6.0-0", command: "kube-apiserver"},
		"etcd of Kubernetes, another tool":   {image: "registry.k8s.io/etcd:3.6.0-0", command: "etcdctl"},
		"another name":                       {image: "docker.io/library/nginx:1.19", command: "etcd"},
		"karmadactl alone":                   {image: "karmada/karmadactl"},
		"only the prefix":                    {image: "karmada-:v1"},
		"the prefix and another name":        {image: "karmada-shell"},
		"a name that starts like a program":  {image: "karmada-agent-evil"},
		"a path to another program":          {image: "karmada-agent/../../bin/sh"},
		"an empty image":                     {},
		"the name of the image in directory": {image: "karmada-io/agent"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := Container{Image: test.image}
			if test.command != "" {
				c.Command = []string{test.command, "--flag"}
			}
			got, err := c.program()
			if want := (installedProgram{name: test.name, file: test.file}); got != want || (err == nil) != (test.name != "") || CanRun(c) != (err == nil) {
				t.Errorf("%v selects %v (%v), want %v", c, got, err, want)
			}
		})
	}
}

func TestProgramsAreOfThisRepository(t *testing.T) {
	for _, program := range append(componentPrograms(), Image) {
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
		"a program with a sidecar":    {[]string{"envoy", "karmada-agent"}, false},
		"an unknown program":          {[]string{"karmada-agent", "karmada-shell"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var containers []Container
			for _, image := range test.images {
				containers = append(containers, Container{Image: image})
			}
			if got := CanRun(containers...); got != test.want {
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
		"a link to the file with all programs": {func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, Image), nil, 0o700); err != nil {
				return err
			}
			return os.Symlink(Image, filepath.Join(dir, "karmada-agent"))
		}, nil},
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
	pod := testPod("linked", "wait")
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command = "karmada-linked", []string{"/bin/karmada-linked"}
	n.create(t, pod)
	n.await(t, "linked", "running", isRunning)
	c := n.findPod(namespace, "linked").findContainer("main")
	if err := c.execWithOutput(t.Context(), []string{"karmada-linked", "act:exit", "0"}, io.Discard); err != nil {
		t.Errorf("running the program with other arguments: %v", err)
	}
}
