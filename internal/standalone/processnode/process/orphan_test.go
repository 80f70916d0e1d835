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

const patience = time.Minute

// The test program is also the node and the program of the test, by this variable.
const actVariable = "KARMADA_TEST_ACT"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(actVariable) {
	case "node":
		err = playNode()
	case "program":
		err = wait()
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func wait() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	return nil
}

// playNode starts a program as a node does, tells its number, and waits to be killed.
func playNode() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := exec.Command(self)
	program.Env = []string{actVariable + "=program"}
	ran, err := Launch(NewSpawner(), program, Confinement{Program: self}, os.Stderr, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Println("process", ran.PID())
	<-ran.Ended()
	return errors.New("the program ended")
}

func TestAKilledNodeLeavesNoProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), self)
	node.Env = append(os.Environ(), actVariable+"=node")
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
		t.Fatalf("process %d does not run", pid)
	}
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for alive(pid) {
		select {
		case <-deadline.C:
			t.Fatalf("process %d outlives its node", pid)
		case <-ticker.C:
		}
	}
}

// alive reports whether a process runs; one that ended and that nobody asked about
// does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
