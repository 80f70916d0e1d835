package main

import (
	"bytes"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/standalone/multicall"
	"karmada.io/karmada/internal/testenv/rawlogs"
)

// asKarmada is an environment variable that makes the test binary run as `karmada`.
const asKarmada = "KARMADA_TEST_MAIN"

func TestMain(m *testing.M) {
	isComponent := multicall.Find(programs(), os.Args[0]) != nil
	if os.Getenv(asKarmada) != "" && !isComponent {
		cobra.OnInitialize(logFromLibraries)
	}
	if os.Getenv(asKarmada) != "" || isComponent {
		main()
		return
	}
	os.Exit(m.Run())
}

// logFromLibraries logs as the libraries do in which a command runs.
func logFromLibraries() {
	klog.Background().Error(nil, "klog")
	grpclog.Warning("[core] grpc: addrConn.createTransport failed")
	grpclog.Error("[core] gRPC")
	log.Print("standard library")
}

func TestKarmadaPrintsNoLogsOfLibraries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{
		{"version"}, {"status"}, {"backup"}, {"restore", "none.tar.gz"}, {"restore", "--report"}, {"restore", "--confirm"}, {"down"}, {"down", "--purge"},
	} {
		if args[0] != "version" {
			args = append(args, "--data-dir", dir)
		}
		text := runAs(t, "karmada", args...).text
		if lines := rawlogs.Find(text); len(lines) > 0 || text == "" {
			t.Errorf("karmada %s printed\n%s", strings.Join(args, " "), text)
		}
	}
}

// TestImageLinksAllPrograms compares the programs with the links of the image. The tool that writes
// the image is in another module.
func TestImageLinksAllPrograms(t *testing.T) {
	list, err := os.ReadFile("../../tools/image/programs.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, program := range programs() {
		names = append(names, program.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, strings.Fields(string(list))); diff != "" {
		t.Errorf("tools/image/programs.txt (-programs +list):\n%s", diff)
	}
}

// result is what a process returned.
type result struct {
	// text is the standard output and the standard error.
	text string
	code int
}

// runAs runs this binary as a program.
func runAs(t *testing.T, name string, args ...string) result {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	process := exec.CommandContext(t.Context(), executable)
	process.Args = append([]string{name}, args...)
	process.Env = append(os.Environ(), asKarmada+"=1")
	process.Stdout, process.Stderr = &text, &text
	err = process.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return result{text.String(), process.ProcessState.ExitCode()}
}

func TestBinaryIsTheProgramOfItsName(t *testing.T) {
	type expectation struct {
		args []string
		// want is a part of the output.
		want string
		code int
	}
	tests := map[string][]expectation{
		"karmada":       {{[]string{"--help"}, "karmada [command]", 0}, {[]string{"--version"}, "unknown flag", 2}, {[]string{"version"}, "karmada version", 0}},
		"any-other":     {{[]string{"--help"}, "karmada [command]", 0}},
		"/bin/karmada":  {{[]string{"--help"}, "karmada [command]", 0}},
		"karmadactl":    {{[]string{"--help"}, "karmadactl <command> --help", 0}, {[]string{"--version"}, "unknown flag", 2}},
		"/a/karmadactl": {{[]string{"--help"}, "karmadactl <command> --help", 0}},
		"kubectl-karmada": {
			{[]string{"--help"}, "kubectl karmada <command> --help", 0}, {[]string{"--version"}, "unknown flag", 2},
		},
		"kube-apiserver": {
			{[]string{"--help"}, "  kube-apiserver [flags]", 0}, {[]string{"--help"}, `Permitted formats: "json"`, 0},
			{[]string{"--version"}, "Kubernetes v", 0}, {[]string{"--no-such-flag"}, "unknown flag", 1},
		},
		"karmada-apiserver": {
			{[]string{"--help"}, "  karmada-apiserver [flags]", 0}, {[]string{"--help"}, "--karmada-admission", 0},
			{[]string{"--version"}, "Kubernetes v", 0}, {[]string{"--no-such-flag"}, "unknown flag", 1},
			{[]string{"--etcd-servers=x", "--karmada-admission-hosts=a:1"}, "must be a DNS name", 1},
		},
		"kube-controller-manager": {
			{[]string{"--help"}, "  kube-controller-manager [flags]", 0}, {[]string{"--help"}, `Permitted formats: "json"`, 0},
			{[]string{"--version"}, "Kubernetes v", 0}, {[]string{"--no-such-flag"}, "unknown flag", 1},
		},
		"etcd": {
			{[]string{"--help"}, "etcd gateway", 0}, {[]string{"--version"}, "etcd Version: 3.6.", 0},
			{[]string{"--no-such-flag"}, "not defined", 2}, {[]string{"gateway", "--help"}, "gateway", 0},
		},
	}
	for _, p := range components.Programs() {
		tests[p.Name] = []expectation{
			{[]string{"--help"}, "  " + p.Name + " [flags]", 0}, {[]string{"version"}, p.Name + " version", 0},
			{[]string{"--version"}, "unknown flag", 2}, {[]string{"--log-json-split-stream"}, "unknown flag", 2},
		}
	}
	for name, expected := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, e := range expected {
				got := runAs(t, name, e.args...)
				if got.code != e.code || !strings.Contains(got.text, e.want) {
					t.Errorf("%s %q: exit code %d, want %d with %q in:\n%s", name, e.args, got.code, e.code, e.want, got.text)
				}
			}
		})
	}
}
