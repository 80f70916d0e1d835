// Package process answers "how does a program run that must not outlive us or reach
// files that are not its own, and how did it end?": processes in groups of their own,
// which the kernel kills when this process is no more, and confines to given files.
package process

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// OutputLimit is how long output is waited for after a process ended, when something
// that it started still holds its pipes.
const OutputLimit = 2 * time.Second

// Process is a command that was started.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	code  int32
}

// Launch starts a command whose input is empty and whose output goes to the writers,
// confined as given.
func Launch(spawner *Spawner, cmd *exec.Cmd, within Confinement, stdout, stderr io.Writer) (*Process, error) {
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, OutputLimit
	release, err := spawner.Start(cmd, within)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer release()
		p.code = CodeOf(cmd.Wait())
	}()
	return p, nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended and all its output is written.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Code is how a process ended that has: its exit code, or Signalled and the number
// of the signal.
func (p *Process) Code() int32 { return p.code }

// Exit codes of processes that did not exit by themselves.
const (
	// Signalled is added to the number of the signal.
	Signalled = 128
	// CodeUnknown is that of a process whose end nobody saw.
	CodeUnknown = 137
)

// CodeOf is the exit code that the end of a command tells.
func CodeOf(err error) int32 {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0
	case !errors.As(err, &exit):
		return CodeUnknown
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Signalled + int32(status.Signal()) //nolint:gosec // signals are small
	}
	return int32(exit.ExitCode()) //nolint:gosec // 0 to 255
}

// Stop asks a process to end, and ends it when it has not within grace. It returns
// when the process has ended.
func (p *Process) Stop(grace time.Duration) {
	select {
	case <-p.ended:
		return
	default:
		sendTo(p.cmd, syscall.SIGTERM)
	}
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-p.ended:
		return
	case <-limit.C:
	}
	sendTo(p.cmd, syscall.SIGKILL)
	<-p.ended
}

// Kill ends a command that a Spawner has started, and what it has started itself.
func Kill(cmd *exec.Cmd) { sendTo(cmd, syscall.SIGKILL) }
