package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

const timeout = time.Minute

// The test binary is also run as the node, and as the program of the node. The value of this
// variable selects the role.
const roleVariable = "KARMADA_TEST_ACT"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVariable) {
	case "node":
		err = runAsNode()
	case "program":
		err = runAsProgram()
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runAsProgram() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	return nil
}

// runAsNode starts a program as a node does, prints the process ID of the program, and waits until
// it is killed.
func runAsNode() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := exec.Command(self)
	program.Env = []string{roleVariable + "=program"}
	launched, err := Launch(NewSpawner(), program, Confinement{Program: self}, os.Stderr, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Println("process", launched.PID())
	<-launched.Ended()
	return errors.New("the program ended")
}

func TestProgramEndsWithKilledNode(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), self)
	node.Env = append(os.Environ(), roleVariable+"=node")
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "process ") {
			if _, err := fmt.Sscanf(lines.Text(), "process %d", &pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pid == 0 || syscall.Kill(pid, 0) != nil {
		t.Fatalf("process %d is not running", pid)
	}
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for isRunning(pid) {
		select {
		case <-deadline.C:
			t.Fatalf("process %d still runs after its node was killed", pid)
		case <-ticker.C:
		}
	}
}

// isRunning reports whether a process is running. It returns false for a zombie process.
func isRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
