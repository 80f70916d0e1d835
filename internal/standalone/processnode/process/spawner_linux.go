package process

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// Spawner starts processes that end with this one, however that ends: the kernel
// kills them when the thread that started them is no more. All are started on one
// thread, which lives as long as the Spawner.
type Spawner struct {
	starts chan start
	ended  chan struct{}
}

type start struct {
	cmd  *exec.Cmd
	done chan error
}

var errClosing = errors.New("the node is stopping")

// NewSpawner makes one, whose Close must be called.
func NewSpawner() *Spawner {
	s := &Spawner{starts: make(chan start), ended: make(chan struct{})}
	go func() {
		// Never unlocked: the thread ends with this goroutine, and with it what is left
		// of its processes.
		runtime.LockOSThread()
		for {
			select {
			case <-s.ended:
				return
			case next := <-s.starts:
				next.done <- next.cmd.Start()
			}
		}
	}()
	return s
}

// Start starts a command in a process group of its own.
func (s *Spawner) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	request := start{cmd: cmd, done: make(chan error, 1)}
	select {
	case s.starts <- request:
	case <-s.ended:
		return errClosing
	}
	if err := <-request.done; err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return nil
}

// Close kills what is left.
func (s *Spawner) Close() { close(s.ended) }

// sendTo sends a signal to a command and to what it started itself.
func sendTo(cmd *exec.Cmd, which syscall.Signal) {
	// The group is there until its last process is reaped: its number is not another's.
	_ = syscall.Kill(-cmd.Process.Pid, which)
}
