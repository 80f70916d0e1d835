package processnode

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// outputTimeout is how long Wait waits for output after a process ended, because descendants of
// the process may still hold the pipes open.
const outputTimeout = 2 * time.Second

// process is a command that was started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	code  int32
}

// launch starts a confined command without input. Its output is written to stdout and stderr.
func launch(spawner *spawner, cmd *exec.Cmd, confinement confinement, stdout, stderr io.Writer) (*process, error) {
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, outputTimeout
	release, err := spawner.Start(cmd, confinement)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer release()
		p.code = exitCodeOf(cmd.Wait())
	}()
	return p, nil
}

// PID returns the process ID.
func (p *process) PID() int { return p.cmd.Process.Pid }

// Ended returns a channel that is closed when the process has ended and all its output is
// written.
func (p *process) Ended() <-chan struct{} { return p.ended }

// ExitCode returns the exit code of a process that has ended. If a signal killed the process, it returns
// signalExitCodeBase plus the signal's number.
func (p *process) ExitCode() int32 { return p.code }

// Exit codes of processes that did not exit normally.
const (
	// signalExitCodeBase plus a signal's number is the exit code of a process that the signal killed.
	signalExitCodeBase = 128
	// exitCodeUnknown is the exit code of a process whose end was not observed.
	exitCodeUnknown = 137
)

// exitCodeOf returns the exit code for an error of exec.Cmd.Wait.
func exitCodeOf(err error) int32 {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0
	case !errors.As(err, &exit):
		return exitCodeUnknown
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalExitCodeBase + int32(status.Signal()) // signals are small
	}
	return int32(exit.ExitCode()) // 0 to 255
}

// Stop sends SIGTERM to a process, and SIGKILL if it has not ended within grace. It returns
// when the process has ended.
func (p *process) Stop(grace time.Duration) {
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
