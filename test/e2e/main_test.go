// Package e2e tests that the built programs work for a user. The tests start and stop the
// programs with their commands and use the kubeconfigs that the programs write. The commands of
// the README are read from its text.
//
// The tests share one installation with three members. Two of the members are joined. The tests
// run in parallel, each in a separate namespace. Tests that stop or kill a process start
// their own installation and run one after the other.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Names of the members of the shared installation. The last one is not joined: tests of
// join and register use it.
const (
	member1     = "member1"
	member2     = "member2"
	spareMember = "member3"
)

// repositoryRoot is the root of the repository, relative to this package.
const repositoryRoot = "../.."

var (
	// binDir is the directory of the programs.
	binDir string
	// shared is the installation for tests that stop no process.
	shared *installation
)

func TestMain(m *testing.M) {
	if runAsKubectl() {
		return
	}
	binFlag := flag.String("bin", "", "directory of the programs; by default they are built")
	flag.Parse()
	os.Exit(run(m, *binFlag))
}

// run builds the programs, starts the shared installation, runs the tests and
// removes the installation.
func run(m *testing.M, binFlag string) int {
	var err error
	if binDir, err = programDir(binFlag); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "karmada-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	began := time.Now()
	shared = &installation{dir: filepath.Join(dir, "shared")}
	defer shared.remove()
	if err := startSharedInstallation(ctx, shared); err != nil {
		fmt.Fprintln(os.Stderr, "starting the shared installation:", err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "shared installation started in", time.Since(began).Round(time.Millisecond))
	code := m.Run()
	for _, line := range logged.lines {
		fmt.Fprintln(os.Stderr, "a command of users printed a log line of a library:", line)
		code = 1
	}
	return code
}

// programDir returns the directory of the programs. It builds them unless a directory is
// given; make rebuilds only what changed.
func programDir(binFlag string) (string, error) {
	if binFlag != "" {
		return filepath.Abs(binFlag)
	}
	build := exec.Command("make", "-C", repositoryRoot, "build")
	build.Env = cleanEnvironment()
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building the programs: %w", err)
	}
	return filepath.Abs(filepath.Join(repositoryRoot, "bin"))
}

// startSharedInstallation starts an installation and joins its first two members with
// karmadactl join.
func startSharedInstallation(ctx context.Context, i *installation) error {
	if err := i.up(ctx, "--members", "3", "--nodes-per-member", "1", "--join=false",
		"--feature-gates", "PropagationPolicyPreemption=true,FederatedQuotaEnforcement=true"); err != nil {
		return err
	}
	for name, region := range map[string]string{member1: "east", member2: "west"} {
		result := i.karmadactl(ctx, "join", name, "--cluster-region", region,
			"--cluster-kubeconfig", i.membersConfig(), "--cluster-context", name)
		if result.code != 0 {
			return fmt.Errorf("joining %s: %s", name, result.stderr)
		}
	}
	return i.awaitClustersReady(ctx, member1, member2)
}
