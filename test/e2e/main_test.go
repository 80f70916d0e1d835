// Package e2e answers "does it work the way a user meets it?": the programs as
// they are built, started and stopped by their commands, talked to over their
// kubeconfigs. The README is run from its own text.
//
// One installation with three members, of which two are joined, is shared by the
// tests; they run in parallel, each in a namespace of its own. Tests that stop or
// kill something bring their own installation and run one after the other.
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

// Names of the members of the shared installation. The last one is not joined:
// tests of joining take it.
const (
	member1     = "member1"
	member2     = "member2"
	spareMember = "member3"
)

// repositoryRoot is the top of the repository, seen from this package.
const repositoryRoot = "../.."

var (
	// binDir holds the programs.
	binDir string
	// shared is the installation for tests that stop nothing.
	shared *installation
)

func TestMain(m *testing.M) {
	given := flag.String("bin", "", "directory of the programs; by default they are built")
	flag.Parse()
	os.Exit(run(m, *given))
}

// run builds the programs, starts the shared installation, runs the tests and
// removes the installation.
func run(m *testing.M, given string) int {
	var err error
	if binDir, err = programDir(given); err != nil {
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
	return m.Run()
}

// programDir is the directory of the programs. They are built unless somebody names
// a directory; make does nothing where all is up to date.
func programDir(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	build := exec.Command("make", "-C", repositoryRoot, "build")
	build.Env = cleanEnvironment()
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building the programs: %w", err)
	}
	return filepath.Abs(filepath.Join(repositoryRoot, "bin"))
}

// startSharedInstallation starts an installation and joins its first two members the way
// clusters of a user are joined.
func startSharedInstallation(ctx context.Context, i *installation) error {
	if err := i.up(ctx, "--members", "3", "--nodes-per-member", "1", "--join=false",
		"--feature-gates", "PropagationPolicyPreemption=true"); err != nil {
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
