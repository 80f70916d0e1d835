package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// commandResult is what a program left when it ended.
type commandResult struct {
	stdout, stderr string
	code           int
}

// runProgram runs a program to its end. A program that cannot be run, or that the end
// of ctx killed, has code -1.
func runProgram(ctx context.Context, environment []string, program string, args ...string) commandResult {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, program), args...)
	cmd.Env = append(cleanEnvironment(), environment...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	ended := commandResult{stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		ended.code = exit.ExitCode()
	case err != nil:
		ended.code, ended.stderr = -1, ended.stderr+err.Error()
	}
	return ended
}

// cleanEnvironment is the environment without what would lead a program, or a
// make that make started, astray.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "KUBECONFIG" || strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
	})
}

// mustFail demands that a program refused, in the way that its exit code tells,
// and told on stderr, and there alone, each of the given things.
func (r commandResult) mustFail(t *testing.T, code int, told ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	if r.stdout != "" {
		t.Errorf("stdout is for data, found %q", r.stdout)
	}
	for _, want := range told {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("stderr does not tell %q:\n%s", want, r.stderr)
		}
	}
}

func (r commandResult) mustSucceed(t *testing.T) {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}
