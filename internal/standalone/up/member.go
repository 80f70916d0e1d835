package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone"
)

// memberOptions are what a child process needs to run one member cluster.
type memberOptions struct {
	Name  string
	Dir   string
	Port  int
	Nodes standalone.NodeOptions
	// CertificateLifetime is how long its certificates are valid.
	CertificateLifetime time.Duration
	// ProgramsOff says why no Pod runs as a process of this machine; empty means that
	// those of our images do.
	ProgramsOff string
	// ProgramsUnconfined lets them run where the kernel cannot confine them.
	ProgramsUnconfined bool
}

// runMember is the child: it runs one simulated cluster until its standard input
// ends, which it does when the parent lets go of it or dies.
func runMember(ctx context.Context, o memberOptions, events io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	tell := encoder(events)
	release, err := takeOver(ctx, o.Dir, takeOverLimit)
	if err != nil {
		tell(event{Error: err.Error()})
		return err
	}
	defer release()
	cluster, err := standalone.Start(ctx, o.cluster())
	if err == nil {
		defer cluster.Stop()
		err = cluster.StartWorkloads(ctx, o.Nodes)
	}
	if err != nil {
		tell(event{Error: err.Error()})
		return err
	}
	tell(event{Ready: true})
	return watchOver(ctx, cluster)
}

// cluster is what the cluster of the member is made of.
func (o memberOptions) cluster() standalone.Options {
	var off error
	if o.ProgramsOff != "" {
		off = errors.New(o.ProgramsOff)
	}
	return standalone.Options{
		ProgramsOff: off, ProgramsUnconfined: o.ProgramsUnconfined,
		Name: o.Name, CommonName: o.Name, Dir: o.Dir, Port: o.Port, CertificateLifetime: o.CertificateLifetime,
		Programs: true, Log: zapcore.AddSync(os.Stderr), StartOver: dataDirOfMember(o.Dir).startOverMember(o.Name),
		Admission: []standalone.AdmissionPlugin{standalone.Untracked()},
		// Whoever calls a simulated cluster administers it, and is never made to wait.
		APIServerFlags: []string{"--enable-priority-and-fairness=false"},
	}
}

// takeOver takes the directory of a member for this process. A parent that was
// killed leaves members that are about to end and still have their ports and
// their store: the next ones wait for them, as long as limit.
func takeOver(ctx context.Context, path string, limit time.Duration) (release func(), err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("creating directory of member: %w", err)
	}
	dir := dataDir{path}
	err = wait.PollUntilContextTimeout(ctx, stopPollEvery, limit, true, func(context.Context) (bool, error) {
		var err error
		release, err = dir.lock()
		if errors.Is(err, errInUse) {
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("its process of an earlier start still runs after %s: end it with `kill -9 %d`, which loses nothing", limit, dir.holder())
	}
	return release, err
}

// watchOver returns when ctx ends or a server of the cluster ended by itself.
func watchOver(ctx context.Context, cluster *standalone.Cluster) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := cluster.Failed(); err != nil {
				return err
			}
		}
	}
}

// child is the parent's side of a member cluster.
type child struct {
	options memberOptions
	// started is called whenever the process was started.
	started func()
	command func() *exec.Cmd
	openLog func() (*os.File, error)

	mu  sync.Mutex
	cmd *exec.Cmd
}

const (
	restartDelay    = time.Second
	maxRestartDelay = 30 * time.Second
	childStopLimit  = 8 * time.Second
	takeOverLimit   = 20 * time.Second
	memberNiceness  = 10
)

// run keeps the child running until ctx ends: one that dies is started again.
// ready is called once, when the cluster first serves or cannot be started.
func (c *child) run(ctx context.Context, ready func(error)) {
	delay := restartDelay
	var once sync.Once
	first := func(err error) { once.Do(func() { ready(err) }) }
	for ctx.Err() == nil {
		began := time.Now()
		err := c.runOnce(ctx, first)
		if ctx.Err() != nil {
			first(ctx.Err())
			return
		}
		first(err)
		klog.FromContext(ctx).Error(err, "Member cluster ended, starting it again", "member", c.options.Name, "delay", delay)
		if time.Since(began) > maxRestartDelay {
			delay = restartDelay
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, maxRestartDelay)
	}
}

func (c *child) runOnce(ctx context.Context, ready func(error)) error {
	log, err := c.openLog()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe to member %q: %w", c.options.Name, err)
	}
	defer func() { _ = reader.Close() }()
	cmd := c.command()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{writer}
	// A process group of its own: Ctrl-C reaches the parent, which stops its
	// children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("making a pipe to member %q: %w", c.options.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting member %q: %w", c.options.Name, err)
	}
	_ = writer.Close()
	// What is simulated must not starve the control plane. It is no harm if the
	// system refuses.
	_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, memberNiceness)
	c.set(cmd)
	c.started()
	defer c.set(nil)
	told := make(chan struct{})
	go func() {
		defer close(told)
		if err := awaitReady(reader); err != nil {
			ready(fmt.Errorf("member %q: %w (see %s)", c.options.Name, err, log.Name()))
			return
		}
		ready(nil)
	}()
	stop := context.AfterFunc(ctx, func() {
		_ = stdin.Close()
		time.AfterFunc(childStopLimit, func() { _ = cmd.Process.Kill() })
	})
	defer stop()
	err = cmd.Wait()
	// What it has told of its end says more than how it ended.
	<-told
	if err != nil {
		return fmt.Errorf("member %q ended: %w (see %s)", c.options.Name, err, log.Name())
	}
	return fmt.Errorf("member %q ended (see %s)", c.options.Name, log.Name())
}

func (c *child) set(cmd *exec.Cmd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cmd = cmd
}

// pid is the child's process, 0 when it is not running.
func (c *child) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil || c.cmd.Process == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

var errEnded = errors.New("it ended before it was ready")

// awaitReady reads the events of another process until it is ready or gives up.
func awaitReady(events io.Reader) error {
	lines := json.NewDecoder(events)
	for {
		var e event
		if err := lines.Decode(&e); err != nil {
			return errEnded
		}
		if e.Error != "" {
			return errors.New(e.Error)
		}
		if e.Ready {
			return nil
		}
	}
}

// access is the administrator's way into a member, from what its process left in
// its directory.
func (c *child) access() (pki.KubeconfigContext, error) {
	return standalone.AccessTo(c.options.Name, c.options.Dir, c.options.Port)
}
