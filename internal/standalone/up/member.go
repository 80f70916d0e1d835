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

// memberOptions are the options of a member's child process.
type memberOptions struct {
	Name  string
	Dir   string
	Port  int
	Nodes standalone.NodeOptions
	// CertificateLifetime is the validity of the cluster's certificates.
	CertificateLifetime time.Duration
	// ProgramsDisabled is the reason why no Pod runs as a process on this machine. If it is empty, Pods
	// with Karmada images run as processes.
	ProgramsDisabled string
	// AllowUnconfined permits Pods to run as processes even if the kernel cannot confine the processes.
	AllowUnconfined bool
	// EstimatorPort is the port on which the member serves estimates of its free capacity.
	EstimatorPort int
	// EstimatorsDir is the directory that contains the estimators' certificates. If it is empty, the
	// member serves no estimates.
	EstimatorsDir string
	// FeatureGates are the estimator's feature gates, in the format that gates.Set.Given returns.
	FeatureGates string
}

// runMember is the child process's main function. It runs one simulated cluster until its standard input
// is closed, which happens when the parent stops the child or ends.
func runMember(ctx context.Context, o memberOptions, events io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	send := newEventEncoder(events)
	release, err := acquireMemberDir(ctx, o.Dir, memberDirTimeout)
	if err != nil {
		send(event{Error: err.Error()})
		return err
	}
	defer release()
	cluster, err := standalone.Start(ctx, o.cluster())
	if err == nil {
		defer cluster.Stop()
		err = cluster.StartWorkloads(ctx, o.Nodes)
	}
	if err != nil {
		send(event{Error: err.Error()})
		return err
	}
	if o.EstimatorsDir != "" {
		cluster.Run(ctx, "estimator", func(ctx context.Context) error { return o.serveEstimates(ctx, cluster.InProcessConfig()) })
	}
	send(event{Ready: true})
	return awaitFailure(ctx, cluster)
}

// cluster returns the simulated cluster's options.
func (m memberOptions) cluster() standalone.Options {
	var programsDisabled error
	if m.ProgramsDisabled != "" {
		programsDisabled = errors.New(m.ProgramsDisabled)
	}
	return standalone.Options{
		ProgramsDisabled: programsDisabled, AllowUnconfined: m.AllowUnconfined,
		Name: m.Name, CommonName: m.Name, Dir: m.Dir, Port: m.Port, CertificateLifetime: m.CertificateLifetime,
		RunPrograms: true, Simulate: true, Log: zapcore.AddSync(os.Stderr), StartOverAdvice: dataDirOfMember(m.Dir).startOverMemberAdvice(m.Name),
		Admission: []standalone.AdmissionPlugin{standalone.NewUntrackedFields()},
		// Do not limit requests, because every client of a simulated cluster is an administrator.
		APIServerFlags: []string{"--enable-priority-and-fairness=false"},
	}
}

// acquireMemberDir locks the member's directory for this process. If an earlier parent was killed, its
// members may not have ended yet, and still use their ports and their etcd. acquireMemberDir waits
// until they have ended, but not longer than timeout.
func acquireMemberDir(ctx context.Context, path string, timeout time.Duration) (release func(), err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the member: %w", err)
	}
	dir := dataDir{path}
	err = wait.PollUntilContextTimeout(ctx, stopPollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		release, err = dir.lock(ctx)
		if errors.Is(err, errInUse) {
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("the process of an earlier start still runs after %s: end it with `kill -9 %d`, no data is lost", timeout,
			dir.recordedHolder())
	}
	return release, err
}

// awaitFailure returns the error of a server that ended unexpectedly, or nil when ctx ends.
func awaitFailure(ctx context.Context, cluster *standalone.Cluster) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := cluster.Failure(); err != nil {
				return err
			}
		}
	}
}

// memberSupervisor runs a member cluster's child process and restarts it.
type memberSupervisor struct {
	options memberOptions
	// ready receives one value: the error of the first start, or nil. ended is closed when the process
	// has ended and will not be restarted.
	ready chan error
	ended chan struct{}
	// stop ends the process.
	stop context.CancelFunc
	// maintain runs in parallel to the process until its context ends.
	maintain func(context.Context)
	// onStarted is called after each start of the process.
	onStarted  func()
	newCommand func() *exec.Cmd
	openLog    func() (*os.File, error)

	mu  sync.Mutex
	cmd *exec.Cmd
}

const (
	restartDelay      = time.Second
	maxRestartDelay   = 30 * time.Second
	memberStopTimeout = 8 * time.Second
	memberDirTimeout  = 20 * time.Second
	memberNiceness    = 10
)

// start runs the process in goroutines of the given group, until ctx ends or stop is called.
func (m *memberSupervisor) start(ctx context.Context, group *sync.WaitGroup) {
	ctx, m.stop = context.WithCancel(ctx)
	group.Go(func() {
		defer close(m.ended)
		var maintaining sync.WaitGroup
		maintaining.Go(func() { m.maintain(ctx) })
		m.run(ctx, func(err error) { m.ready <- err })
		maintaining.Wait()
	})
}

// run restarts the child process whenever it ends, until ctx ends. It calls ready once: when the
// cluster serves requests for the first time, or when the cluster cannot be started.
func (m *memberSupervisor) run(ctx context.Context, ready func(error)) {
	delay := restartDelay
	var once sync.Once
	readyOnce := func(err error) { once.Do(func() { ready(err) }) }
	for ctx.Err() == nil {
		started := time.Now()
		err := m.runOnce(ctx, readyOnce)
		if ctx.Err() != nil {
			readyOnce(ctx.Err())
			return
		}
		readyOnce(err)
		klog.FromContext(ctx).Error(err, "Member cluster ended, restarting it", "member", m.options.Name, "delay", delay)
		if time.Since(started) > maxRestartDelay {
			delay = restartDelay
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, maxRestartDelay)
	}
}

func (m *memberSupervisor) runOnce(ctx context.Context, ready func(error)) error {
	log, err := m.openLog()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("creating a pipe to member %q: %w", m.options.Name, err)
	}
	defer func() { _ = reader.Close() }()
	cmd := m.newCommand()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{writer}
	// Give the child its own process group, so that Ctrl-C reaches only the parent, which stops its
	// children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("creating a pipe to member %q: %w", m.options.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting member %q: %w", m.options.Name, err)
	}
	_ = writer.Close()
	// The lower priority prevents simulated clusters from starving the control plane. Ignore errors,
	// because the priority is optional.
	_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, memberNiceness)
	m.setCmd(cmd)
	m.onStarted()
	defer m.setCmd(nil)
	eventsRead := make(chan struct{})
	go func() {
		defer close(eventsRead)
		if err := awaitReady(reader); err != nil {
			ready(fmt.Errorf("member %q: %w (see %s)", m.options.Name, err, log.Name()))
			return
		}
		ready(nil)
	}()
	stop := context.AfterFunc(ctx, func() {
		_ = stdin.Close()
		time.AfterFunc(memberStopTimeout, func() { _ = cmd.Process.Kill() })
	})
	defer stop()
	err = cmd.Wait()
	// The child's last event has more details than its exit code.
	<-eventsRead
	if err != nil {
		return fmt.Errorf("member %q ended: %w (see %s)", m.options.Name, err, log.Name())
	}
	return fmt.Errorf("member %q ended (see %s)", m.options.Name, log.Name())
}

func (m *memberSupervisor) setCmd(cmd *exec.Cmd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cmd = cmd
}

// pid returns the child's process ID, or 0 if the child is not running.
func (m *memberSupervisor) pid() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil || m.cmd.Process == nil {
		return 0
	}
	return m.cmd.Process.Pid
}

var errEndedEarly = errors.New("the process ended before it was ready")

// awaitReady reads another process's events until that process is ready or has failed.
func awaitReady(events io.Reader) error {
	lines := json.NewDecoder(events)
	for {
		var e event
		if err := lines.Decode(&e); err != nil {
			return errEndedEarly
		}
		if e.Error != "" {
			return errors.New(e.Error)
		}
		if e.Ready {
			return nil
		}
	}
}

// adminContext returns the member administrator's kubeconfig context. It refers to files that the
// member's process wrote.
func (m *memberSupervisor) adminContext() (pki.KubeconfigContext, error) {
	return standalone.LoopbackAdminContext(m.options.Name, m.options.Dir, m.options.Port)
}
