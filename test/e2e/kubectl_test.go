package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

// kubectlVariable makes the test program run kubectl instead of the tests.
const kubectlVariable = "KARMADA_E2E_KUBECTL"

// runAsKubectl runs kubectl with the arguments of this process, if it is a child that newKubectl
// started. A machine may have no kubectl, or one of another version.
func runAsKubectl() (isChild bool) {
	if os.Getenv(kubectlVariable) == "" {
		return false
	}
	command := kubectl.NewDefaultKubectlCommand()
	command.SetArgs(os.Args[1:])
	if err := command.Execute(); err != nil {
		os.Exit(1)
	}
	return true
}

// newKubectl returns a command that runs kubectl with a kubeconfig.
func newKubectl(ctx context.Context, kubeconfig string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, self, args...)
	command.Env = append(cleanEnvironment(), kubectlVariable+"=1", "KUBECONFIG="+kubeconfig)
	return command, nil
}

// writeKubectl writes a program kubectl that runs the kubectl of this test, and returns its directory.
func writeKubectl(t *testing.T) (directory string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	directory = t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", kubectlVariable, self)
	if err := os.WriteFile(filepath.Join(directory, "kubectl"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return directory
}

// runKubectl runs kubectl with a kubeconfig.
func runKubectl(ctx context.Context, kubeconfig string, args ...string) commandResult {
	command, err := newKubectl(ctx, kubeconfig, args...)
	if err != nil {
		return commandResult{code: -1, stderr: err.Error()}
	}
	return runCommand(command)
}

// startKubectl starts kubectl, and returns its output. kubectl ends with the test.
func startKubectl(t *testing.T, kubeconfig string, args ...string) io.Reader {
	t.Helper()
	command, err := newKubectl(t.Context(), kubeconfig, args...)
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return output
}

// writeKubeconfigAt writes a kubeconfig like that of the control plane, with a path below the address
// of the server, and returns its file.
func writeKubeconfigAt(t *testing.T, i *installation, path string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(i.karmadaConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server += path
	}
	file := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
