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
	"sync"
	"testing"

	"karmada.io/karmada/internal/testenv/rawlogs"
)

// commandResult is the output and the exit code of a program.
type commandResult struct {
	stdout, stderr string
	code           int
}

// runProgram runs a program until it exits. The code is -1 if the program cannot be run, or
// if it is killed because ctx ends.
func runProgram(ctx context.Context, environment []string, program string, args ...string) commandResult {
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, program), args...)
	cmd.Env = append(cleanEnvironment(), environment...)
	result := runCommand(cmd)
	if slices.Contains([]string{"karmada", "karmadactl", "kubectl-karmada"}, program) {
		logged.add(program, args, rawlogs.Find(result.stderr))
	}
	return result
}

// logged are the log lines of libraries that commands of all tests printed. The commands of users print
// none by default.
var logged rawLines

type rawLines struct {
	mu    sync.Mutex
	lines []string
}

func (r *rawLines) add(program string, args, lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range lines {
		r.lines = append(r.lines, program+" "+strings.Join(args, " ")+": "+line)
	}
}

// runCommand runs a command and returns its result.
func runCommand(cmd *exec.Cmd) commandResult {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	result := commandResult{stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		result.code = exit.ExitCode()
	case err != nil:
		result.code, result.stderr = -1, result.stderr+err.Error()
	}
	return result
}

// cleanEnvironment returns the environment without variables that change the behavior of a
// program or of a nested make.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "KUBECONFIG" || strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
	})
}

// mustFail requires an exit code, an empty stdout, and that stderr contains each of the
// given texts.
func (c commandResult) mustFail(t *testing.T, code int, parts ...string) {
	t.Helper()
	if c.code != code {
		t.Errorf("exit code %d, want %d", c.code, code)
	}
	if c.stdout != "" {
		t.Errorf("stdout must be empty after an error, found %q", c.stdout)
	}
	for _, want := range parts {
		if !strings.Contains(c.stderr, want) {
			t.Errorf("stderr does not contain %q:\n%s", want, c.stderr)
		}
	}
}

func (c commandResult) mustSucceed(t *testing.T) {
	t.Helper()
	if c.code != 0 {
		t.Fatalf("exit code %d:\n%s%s", c.code, c.stdout, c.stderr)
	}
}
