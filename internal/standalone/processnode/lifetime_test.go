package processnode

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runAsNode starts a program as a node does, prints the program's process ID, and waits until it is killed.
func runAsNode() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := exec.Command(self)
	program.Env = []string{roleVariable + "=wait"}
	launched, err := launch(newSpawner(), program, confinement{Program: self}, os.Stderr, os.Stderr)
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
	for isProcessRunning(pid) {
		select {
		case <-deadline.C:
			t.Fatalf("process %d still runs after its node was killed", pid)
		case <-ticker.C:
		}
	}
}

// isProcessRunning reports whether a process is running. It returns false for a zombie process.
func isProcessRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
