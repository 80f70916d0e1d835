package process

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

// Spawner starts processes that end with this one, however that ends: the kernel
// kills a process when the thread that started it is no more. Each process has a
// thread of its own, which is confined as the process is, and lives as long.
type Spawner struct {
	ended chan struct{}
}

var errClosing = errors.New("the node is stopping")

// NewSpawner makes one, whose Close must be called.
func NewSpawner() *Spawner { return &Spawner{ended: make(chan struct{})} }

// Start starts a command in a process group of its own, confined as given. The caller
// calls release when the command has ended.
func (s *Spawner) Start(cmd *exec.Cmd, within Confinement) (release func(), err error) {
	select {
	case <-s.ended:
		return nil, errClosing
	default:
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, released := make(chan error, 1), make(chan struct{})
	onOwnThread(func() {
		err := startConfined(cmd, within)
		started <- err
		if err != nil {
			return
		}
		select {
		case <-s.ended:
		case <-released:
		}
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return sync.OnceFunc(func() { close(released) }), nil
}

// onOwnThread runs a function on a thread that ends with it, and with the thread what is
// left of its processes.
func onOwnThread(run func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			run()
			return
		}
		// The first thread of a process never ends. It is held until the function has
		// begun on another one.
		begun := make(chan struct{})
		onOwnThread(func() {
			close(begun)
			run()
		})
		<-begun
		runtime.UnlockOSThread()
	}()
}

func startConfined(cmd *exec.Cmd, within Confinement) error {
	if within.Program != "" {
		if err := within.restrict(); err != nil {
			return err
		}
	}
	return cmd.Start() //nolint:wrapcheck // the caller names the command
}

// Close kills what is left.
func (s *Spawner) Close() { close(s.ended) }

// sendTo sends a signal to a command and to what it started itself.
func sendTo(cmd *exec.Cmd, which syscall.Signal) {
	// The group is there until its last process is reaped: its number is not another's.
	_ = syscall.Kill(-cmd.Process.Pid, which)
}
