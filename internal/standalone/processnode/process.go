package processnode

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// pipeLimit is how long output is waited for after a process ended, when something
// that it started still holds its pipes.
const pipeLimit = 2 * time.Second

// command is what a container runs, with everything resolved that differs on this
// machine.
type command struct {
	path string
	args []string
	env  []string
	dir  string
	// mounts and address are how other commands in the container are resolved.
	mounts  mounts
	address string
}

// process is a command that was started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// code is that of the end; a signal gives 128 and its number.
	code int32
}

// launch starts a command. Its input is empty.
func launch(spawner *spawner, c command, stdout, stderr io.Writer) (*process, error) {
	cmd := exec.Command(c.path, c.args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, pipeLimit
	if err := spawner.start(cmd); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.code = exitCode(cmd.Wait())
	}()
	return p, nil
}

const (
	signalled   = 128
	codeUnknown = 137
)

func exitCode(err error) int32 {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0
	case !errors.As(err, &exit):
		return codeUnknown
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalled + int32(status.Signal()) //nolint:gosec // signals are small
	}
	return int32(exit.ExitCode()) //nolint:gosec // 0 to 255
}

// stop asks a process to end, and ends it when it has not after a while.
func (p *process) stop(grace time.Duration) {
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

// resolve turns what a container says into what is run here. The first word of its
// command is the program of its image; it has no other.
func resolve(program string, container *corev1.Container, env []corev1.EnvVar, m mounts, address, root string) (command, error) {
	values := map[string]string{}
	for _, variable := range env {
		values[variable.Name] = variable.Value
	}
	words := container.Args
	if len(container.Command) > 0 {
		name := filepath.Base(container.Command[0])
		if name != filepath.Base(program) {
			return command{}, &exec.Error{Name: container.Command[0], Err: errors.New("its image is played by the program " + filepath.Base(program) + " alone: there is no other command in it")}
		}
		words = append(append([]string{}, container.Command[1:]...), container.Args...)
	}
	c := command{path: program, mounts: m, address: address, dir: root}
	if container.WorkingDir != "" {
		if dir := m.rewrite(container.WorkingDir); dir != container.WorkingDir {
			c.dir = dir
		}
	}
	for _, word := range words {
		c.args = append(c.args, c.word(expand(word, values)))
	}
	for _, variable := range env {
		c.env = append(c.env, variable.Name+"="+m.rewrite(variable.Value))
	}
	return c, nil
}

// word is one word of a command line as it is meant here.
func (c command) word(text string) string { return narrowed(c.mounts.rewrite(text), c.address) }

// within is another command in the container: a program of this machine.
func (c command) within(ctx context.Context, words []string) (*exec.Cmd, error) {
	path := c.path
	if filepath.Base(words[0]) != filepath.Base(c.path) {
		found, err := exec.LookPath(c.mounts.rewrite(words[0]))
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the command
		}
		path = found
	}
	var args []string
	for _, word := range words[1:] {
		args = append(args, c.mounts.rewrite(word))
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = c.env, c.dir, pipeLimit
	cmd.Cancel = func() error { sendTo(cmd, syscall.SIGKILL); return nil }
	return cmd, nil
}
