package processnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawner starts processes that end together with this process, even if this process is killed.
// The kernel kills a child when the thread that started the child ends. So each child has a
// dedicated thread with the same confinement and lifetime as the child.
type spawner struct {
	closed chan struct{}
}

var errSpawnerClosed = errors.New("the node is stopping")

// newSpawner creates a Spawner. The caller must call Close.
func newSpawner() *spawner { return &spawner{closed: make(chan struct{})} }

// Start starts a confined command in its own process group. The caller must call release after the command
// has ended.
func (s *spawner) Start(cmd *exec.Cmd, confinement confinement) (release func(), err error) {
	select {
	case <-s.closed:
		return nil, errSpawnerClosed
	default:
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, released := make(chan error, 1), make(chan struct{})
	runOnNewThread(func() {
		err := startConfined(cmd, confinement)
		started <- err
		if err != nil {
			return
		}
		select {
		case <-s.closed:
		case <-released:
		}
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return sync.OnceFunc(func() { close(released) }), nil
}

// runOnNewThread runs a function on a new thread that ends with the function. When the thread
// ends, the kernel kills the remaining children of the thread.
func runOnNewThread(run func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			run()
			return
		}
		// The main thread of a process never ends, so it must not run the function. Block the main
		// thread until the function runs on another thread.
		started := make(chan struct{})
		runOnNewThread(func() {
			close(started)
			run()
		})
		<-started
		runtime.UnlockOSThread()
	}()
}

func startConfined(cmd *exec.Cmd, confinement confinement) error {
	if confinement.Program != "" {
		if err := confinement.restrict(); err != nil {
			return err
		}
	}
	return cmd.Start() // the caller names the command
}

// Close kills the remaining processes.
func (s *spawner) Close() { close(s.closed) }

// signalGroup sends a signal to a command and its descendants.
func signalGroup(cmd *exec.Cmd, signal syscall.Signal) {
	// The kernel does not reuse the ID of a process group until the last process of the group is
	// reaped.
	_ = syscall.Kill(-cmd.Process.Pid, signal)
}
