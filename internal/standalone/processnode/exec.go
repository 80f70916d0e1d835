package processnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/standalone/processnode/kubelet"
	"karmada.io/karmada/internal/standalone/processnode/process"
)

// findPod returns a Pod of this node, or nil if the Pod does not run on this node.
func (n *Node) findPod(namespace, name string) kubelet.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		if object := p.latest(); object.Namespace == namespace && object.Name == name {
			return p
		}
	}
	return nil
}

// Address implements kubelet.Pod.
func (p *pod) Address() string { return p.address.String() }

// Container implements kubelet.Pod.
func (p *pod) Container(name string) kubelet.Container {
	for _, c := range append(append([]*container{}, p.containers...), p.initContainers...) {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}

var errLogNotFound = errors.New("no log found")

// Log implements kubelet.Container.
func (c *container) Log(previous bool) (path string, log *kubelet.LogFile, err error) {
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

// execWithOutput runs a command in the container, as Exec does, and writes both output streams to
// out.
func (c *container) execWithOutput(ctx context.Context, command []string, out io.Writer) error {
	return c.Exec(ctx, command, kubelet.Streams{Stdout: out, Stderr: out})
}

var errNotRunning = errors.New("the program is not running")

// Exec implements kubelet.Container.
func (c *container) Exec(ctx context.Context, arguments []string, streams kubelet.Streams) error {
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
	cmd.Env, cmd.Dir, cmd.WaitDelay = execCommand.Env, execCommand.Dir, process.OutputTimeout
	cmd.Cancel = func() error { process.Kill(cmd); return nil }
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

// Attach implements kubelet.Container. Programs have no standard input, so the input of the
// client is discarded.
func (c *container) Attach(ctx context.Context, streams kubelet.Streams) error {
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
			errs[i] = kubelet.ReadLog(ctx, path, log, kubelet.LogQuery{Follow: true, Stream: output.name}, &lockedWriter{&lock, output.out})
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
