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

	"karmada.io/karmada/internal/standalone/processnode/containerlog"
	"karmada.io/karmada/internal/standalone/processnode/kubelet"
	"karmada.io/karmada/internal/standalone/processnode/process"
)

// hosted is a Pod that runs here, nil if it does not.
func (n *Node) hosted(namespace, name string) kubelet.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		if object := p.stored(); object.Namespace == namespace && object.Name == name {
			return p
		}
	}
	return nil
}

// Address implements kubelet.Pod.
func (p *pod) Address() string { return p.address.String() }

// Container implements kubelet.Pod.
func (p *pod) Container(name string) kubelet.Container {
	for _, c := range append(append([]*container{}, p.containers...), p.inits...) {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}

var errNoLog = errors.New("there is no log")

// Log implements kubelet.Container.
func (c *container) Log(previous bool) (path string, log *containerlog.File, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	life, state := c.status.RestartCount, c.status.State
	// While the next life is waited for, the one that ended is the previous one, and the
	// present one as well.
	if previous && state.Waiting == nil {
		life--
	}
	path = c.logPath(life)
	if _, err := os.Stat(path); err != nil {
		return "", nil, fmt.Errorf("container %q: %w: %s", c.spec.Name, errNoLog, reasonOf(state))
	}
	return path, c.logs[life], nil
}

func reasonOf(state corev1.ContainerState) string {
	switch {
	case state.Waiting != nil:
		return "it is waiting: " + state.Waiting.Reason + " " + state.Waiting.Message
	case state.Terminated != nil:
		return "it ended: " + state.Terminated.Reason + " " + state.Terminated.Message
	default:
		return "it has written nothing"
	}
}

// exec runs the program of the container with other arguments.
func (c *container) exec(ctx context.Context, words []string, out io.Writer) error {
	return c.Exec(ctx, words, kubelet.Streams{Stdout: out, Stderr: out})
}

var errNotRunning = errors.New("its program is not running")

// Exec implements kubelet.Container.
func (c *container) Exec(ctx context.Context, words []string, streams kubelet.Streams) error {
	c.mu.Lock()
	running, command := c.running, c.command
	c.mu.Unlock()
	if running == nil {
		return fmt.Errorf("container %q: %w", c.spec.Name, errNotRunning)
	}
	other, err := command.Within(words)
	if err != nil {
		return err //nolint:wrapcheck // it names the command
	}
	cmd := exec.CommandContext(ctx, other.Path, other.Args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = other.Env, other.Dir, process.OutputLimit
	cmd.Cancel = func() error { process.Kill(cmd); return nil }
	cmd.Stdout, cmd.Stderr = streams.Stdout, streams.Stderr
	if streams.Stdin != nil {
		// Not cmd.Stdin: a command that has ended does not wait for somebody to type.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return fmt.Errorf("making a pipe: %w", err)
		}
		go func() {
			_, _ = io.Copy(stdin, streams.Stdin)
			_ = stdin.Close()
		}()
	}
	release, err := c.pod.node.spawner.Start(cmd, c.confinement(other))
	if err != nil {
		return err
	}
	defer release()
	return cmd.Wait() //nolint:wrapcheck // callers read the exit code
}

// Attach implements kubelet.Container. The input of programs is empty: what is typed
// goes nowhere.
func (c *container) Attach(ctx context.Context, streams kubelet.Streams) error {
	c.mu.Lock()
	running, life := c.running, c.status.RestartCount
	path, log := c.logPath(life), c.logs[life]
	c.mu.Unlock()
	if running == nil || log == nil {
		return fmt.Errorf("container %q: %w", c.spec.Name, errNotRunning)
	}
	if streams.Stdin != nil {
		go func() { _, _ = io.Copy(io.Discard, streams.Stdin) }()
	}
	var wg sync.WaitGroup
	var turns sync.Mutex // both may go to the same stream
	errs := [2]error{}
	for i, to := range []struct {
		name string
		out  io.Writer
	}{{stdoutName, streams.Stdout}, {stderrName, streams.Stderr}} {
		if to.out == nil {
			continue
		}
		wg.Go(func() {
			errs[i] = containerlog.Read(ctx, path, log, containerlog.Query{Follow: true, Stream: to.name}, &inTurn{&turns, to.out})
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// inTurn writes while nobody else does who has the same lock.
type inTurn struct {
	turn *sync.Mutex
	out  io.Writer
}

// Write implements io.Writer.
func (w *inTurn) Write(text []byte) (int, error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	return w.out.Write(text) //nolint:wrapcheck // it is the other's error
}
