package processnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// findPod returns a Pod of this node, or nil if the Pod does not run on this node.
func (n *Node) findPod(namespace, name string) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		if object := p.latest(); object.Namespace == namespace && object.Name == name {
			return p
		}
	}
	return nil
}

// findContainer returns a container or an init container of the Pod by name, and nil if there is none.
func (p *pod) findContainer(name string) *container {
	for _, c := range append(append([]*container{}, p.containers...), p.initContainers...) {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}

var errLogNotFound = errors.New("no log found")

// log returns the log file of the current or the previous run of the container. file is nil if that run
// has ended.
func (c *container) log(previous bool) (path string, file *logFile, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	run, state := c.status.RestartCount, c.status.State
	// While the container waits for its next run, its last run counts both as the current and as
	// the previous run.
	if previous && state.Waiting == nil {
		run--
	}
	path = c.logPath(run)
	if _, err := os.Stat(path); err != nil {
		return "", nil, fmt.Errorf("container %q: %w: %s", c.spec.Name, errLogNotFound, describeState(state))
	}
	return path, c.logs[run], nil
}

func describeState(state corev1.ContainerState) string {
	switch {
	case state.Waiting != nil:
		return "the container is waiting: " + state.Waiting.Reason + " " + state.Waiting.Message
	case state.Terminated != nil:
		return "the container ended: " + state.Terminated.Reason + " " + state.Terminated.Message
	default:
		return "the container has written nothing"
	}
}

// execWithOutput does the same as exec, and writes both output streams to out.
func (c *container) execWithOutput(ctx context.Context, command []string, out io.Writer) error {
	return c.exec(ctx, command, standardStreams{Stdout: out, Stderr: out})
}

var errNotRunning = errors.New("the program is not running")

// exec runs a command in the container and returns when the command has ended. It returns a non-zero exit
// code as an *exec.ExitError.
func (c *container) exec(ctx context.Context, arguments []string, streams standardStreams) error {
	c.mu.Lock()
	running, command := c.running, c.command
	c.mu.Unlock()
	if running == nil {
		return fmt.Errorf("container %q: %w", c.spec.Name, errNotRunning)
	}
	execCommand, err := command.WithArguments(arguments)
	if err != nil {
		return err // the error names the command
	}
	cmd := exec.CommandContext(ctx, execCommand.Path)
	cmd.Args = append([]string{execCommand.Name}, execCommand.Args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = execCommand.Env, execCommand.Dir, outputTimeout
	cmd.Cancel = func() error { signalGroup(cmd, syscall.SIGKILL); return nil }
	cmd.Stdout, cmd.Stderr = streams.Stdout, streams.Stderr
	if streams.Stdin != nil {
		// With cmd.Stdin, Wait would block until the client sends more input, so use a pipe.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return fmt.Errorf("creating a pipe: %w", err)
		}
		go func() {
			_, _ = io.Copy(stdin, streams.Stdin)
			_ = stdin.Close()
		}()
	}
	release, err := c.pod.node.spawner.Start(cmd, c.confinement(execCommand))
	if err != nil {
		return err
	}
	defer release()
	return cmd.Wait() // callers read the exit code
}

// attach copies the running program's output until the program ends. It discards the client's input,
// because programs have no standard input.
func (c *container) attach(ctx context.Context, streams standardStreams) error {
	c.mu.Lock()
	running, run := c.running, c.status.RestartCount
	path, log := c.logPath(run), c.logs[run]
	c.mu.Unlock()
	if running == nil || log == nil {
		return fmt.Errorf("container %q: %w", c.spec.Name, errNotRunning)
	}
	if streams.Stdin != nil {
		go func() { _, _ = io.Copy(io.Discard, streams.Stdin) }()
	}
	var wg sync.WaitGroup
	var lock sync.Mutex // stdout and stderr may share a stream
	errs := [2]error{}
	for i, output := range []struct {
		name string
		out  io.Writer
	}{{stdoutName, streams.Stdout}, {stderrName, streams.Stderr}} {
		if output.out == nil {
			continue
		}
		wg.Go(func() {
			errs[i] = readLog(ctx, path, log, logQuery{Follow: true, Stream: output.name}, &lockedWriter{&lock, output.out})
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// lockedWriter serializes the writes of all writers that share its lock.
type lockedWriter struct {
	lock *sync.Mutex
	out  io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(text []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.out.Write(text) // the error of the wrapped writer
}
