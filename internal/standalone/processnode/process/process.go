// Package process runs child processes that neither outlive this process nor reach other files,
// and reports how they ended. Every child has its own process group. The kernel kills each child
// when this process ends, and confines each child to given files.
package process

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// OutputTimeout is how long Wait waits for output after a process ended, because descendants of
// the process may still hold the pipes open.
const OutputTimeout = 2 * time.Second

// Process is a command that was started.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	code  int32
}

// Launch starts a confined command without input. Its output is written to stdout and stderr.
func Launch(spawner *Spawner, cmd *exec.Cmd, confinement Confinement, stdout, stderr io.Writer) (*Process, error) {
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, OutputTimeout
	release, err := spawner.Start(cmd, confinement)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer release()
		p.code = ExitCodeOf(cmd.Wait())
	}()
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended returns a channel that is closed when the process has ended and all its output is
// written.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ExitCode returns the exit code of a process that has ended, or SignalExitCodeBase plus the
// number of the signal that killed it.
func (p *Process) ExitCode() int32 { return p.code }

// Exit codes of processes that did not exit normally.
const (
	// SignalExitCodeBase is added to the number of the signal that killed a process.
	SignalExitCodeBase = 128
	// ExitCodeUnknown is the exit code of a process whose end was not observed.
	ExitCodeUnknown = 137
)

// ExitCodeOf returns the exit code for an error of exec.Cmd.Wait.
func ExitCodeOf(err error) int32 {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0
	case !errors.As(err, &exit):
		return ExitCodeUnknown
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return SignalExitCodeBase + int32(status.Signal()) // signals are small
	}
	return int32(exit.ExitCode()) // 0 to 255
}

// Stop sends SIGTERM to a process, and SIGKILL if it has not ended within grace. It returns
// when the process has ended.
func (p *Process) Stop(grace time.Duration) {
	select {
	case <-p.ended:
		return
	default:
		signalGroup(p.cmd, syscall.SIGTERM)
	}
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-p.ended:
		return
	case <-limit.C:
	}
	signalGroup(p.cmd, syscall.SIGKILL)
	<-p.ended
}

// Kill kills a command that a Spawner started, with its descendants.
func Kill(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }
