package processnode

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/standalone/processnode/containerlog"
	"karmada.io/karmada/internal/standalone/processnode/layout"
	"karmada.io/karmada/internal/standalone/processnode/process"
)

// Reasons of the states of a container, as kubelets give them.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonErrImagePull = "ErrImagePull"
	reasonPullBackOff  = "ImagePullBackOff"
	reasonConfigError  = "CreateContainerConfigError"
	reasonStartError   = "StartError"
	reasonCrashLoop    = "CrashLoopBackOff"
	reasonCompleted    = "Completed"
	reasonError        = "Error"
	reasonUnknown      = "ContainerStatusUnknown"
)

// Names of what a program writes, in its log.
const (
	stdoutName = "stdout"
	stderrName = "stderr"
)

// container is one container of a Pod that this node runs: its program, started
// again as the restart policy says.
type container struct {
	pod  *pod
	spec *corev1.Container
	dir  string
	init bool

	mu sync.Mutex
	// status is what the Pod's status says of it.
	status corev1.ContainerStatus
	// failures counts ends in a row, for the delay of the next start.
	failures int
	running  *process.Process
	command  layout.Command
	logs     map[int32]*containerlog.File
}

// newContainer goes on from what an earlier life of the node wrote into the Pod's
// status: what ran then runs no more.
func newContainer(p *pod, spec *corev1.Container, known *corev1.ContainerStatus, init bool) *container {
	c := &container{pod: p, spec: spec, init: init, dir: filepath.Join(p.dir, "containers", spec.Name), logs: map[int32]*containerlog.File{}}
	c.status = corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, State: waiting(reasonCreating, "")}
	if init {
		c.status.State = waiting(reasonInitializing, "")
	}
	if known == nil {
		return c
	}
	c.status = *known
	if running := known.State.Running; running != nil {
		c.status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: process.CodeUnknown, Reason: reasonUnknown, Message: "The node was stopped while the program ran.",
			StartedAt: running.StartedAt, FinishedAt: metav1.NewTime(p.node.now()), ContainerID: known.ContainerID,
		}}
		c.status.Ready = false
		c.status.Started = new(bool)
	}
	return c
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// current is the status as it is now.
func (c *container) current() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.status.DeepCopy()
}

// change changes the status and has it reported.
func (c *container) change(to func(status *corev1.ContainerStatus)) {
	c.mu.Lock()
	to(&c.status)
	c.mu.Unlock()
	c.pod.report()
}

// again reports whether a container that ended is started again.
func again(policy corev1.RestartPolicy, init bool, code int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return !init || code != 0
	}
}

// settled reports whether the container ended for good, and how.
func (c *container) settled() (code int32, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.status.State.Terminated
	if end == nil {
		return 0, false
	}
	return end.ExitCode, !again(c.pod.spec().RestartPolicy, c.init, end.ExitCode)
}

// run starts the program until it ended for good or ctx ends.
func (c *container) run(ctx context.Context) {
	for ctx.Err() == nil {
		if _, ended := c.settled(); ended {
			return
		}
		if !c.backOff(ctx) {
			return
		}
		c.once(ctx)
	}
}

// backOff waits as long as the ends before demand. The first end costs no delay.
func (c *container) backOff(ctx context.Context) bool {
	c.mu.Lock()
	delay, ended := c.pod.node.backoff.after(c.failures), c.status.State.Terminated
	c.mu.Unlock()
	if delay == 0 {
		return ctx.Err() == nil
	}
	if ended != nil {
		c.change(func(status *corev1.ContainerStatus) {
			status.LastTerminationState = corev1.ContainerState{Terminated: ended}
			status.State = waiting(reasonCrashLoop, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, c.spec.Name, c.pod.key))
		})
	}
	return sleep(ctx, delay)
}

func sleep(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// once runs the program once and keeps what became of it.
func (c *container) once(ctx context.Context) {
	ran, reason, err := c.start(ctx)
	if ctx.Err() != nil && err != nil {
		return
	}
	if err != nil {
		c.refuse(reason, err)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := c.pod.node.now()
	watching := c.watch(ctx, ran)
	select {
	case <-ran.Ended():
	case <-ctx.Done():
		ran.Stop(c.pod.grace())
	}
	cancel()
	watching.Wait()
	c.end(ran, began)
}

// maxRefusals bounds what the delay grows with when a program cannot be started.
const maxRefusals = 2

// refuse keeps why the program could not be started. It is tried again later.
func (c *container) refuse(reason string, err error) {
	message, said := err.Error(), false
	c.change(func(status *corev1.ContainerStatus) {
		if reason == reasonErrImagePull && c.failures > 0 {
			reason = reasonPullBackOff
		}
		// What is missing may be there at any time; programs that fail are another matter.
		c.failures = min(c.failures+1, maxRefusals)
		if old := status.State.Waiting; old != nil {
			said = old.Message == message
		}
		if end := status.State.Terminated; end != nil {
			status.LastTerminationState = corev1.ContainerState{Terminated: end}
		}
		status.State = waiting(reason, message)
	})
	if !said {
		c.pod.event(corev1.EventTypeWarning, "Failed", message)
	}
}

// start starts the program; if it cannot, reason says which step failed.
func (c *container) start(ctx context.Context) (ran *process.Process, reason string, err error) {
	command, reason, err := c.prepare(ctx)
	if err != nil {
		return nil, reason, err
	}
	c.mu.Lock()
	life := c.status.RestartCount
	if c.status.State.Terminated != nil || c.status.LastTerminationState.Terminated != nil {
		life++
	}
	c.mu.Unlock()
	log, err := c.openLog(life)
	if err != nil {
		return nil, reasonStartError, err
	}
	stdout, stderr := log.Stream(stdoutName), log.Stream(stderrName)
	ran, err = process.Launch(c.pod.node.spawner, execOf(command), c.confinement(command), stdout, stderr)
	if err != nil {
		log.Close()
		return nil, reasonStartError, err
	}
	go func() {
		<-ran.Ended()
		stdout.Flush()
		stderr.Flush()
		log.Close()
	}()
	started := c.spec.StartupProbe == nil
	c.change(func(status *corev1.ContainerStatus) {
		if end := status.State.Terminated; end != nil {
			status.LastTerminationState = corev1.ContainerState{Terminated: end}
		}
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.pod.node.now())}}
		status.RestartCount = life
		status.ContainerID = fmt.Sprintf("process://%d", ran.PID())
		status.ImageID = "file://" + command.Path
		status.Started = &started
		status.Ready = started && c.spec.ReadinessProbe == nil
		c.running, c.command = ran, command
	})
	c.pod.event(corev1.EventTypeNormal, "Started", fmt.Sprintf("Started %s as process %d", command.Name, ran.PID()))
	return ran, "", nil
}

// prepare finds the program and resolves what it is told.
func (c *container) prepare(ctx context.Context) (_ layout.Command, reason string, err error) {
	name := programOf(c.spec.Image)
	if !slices.Contains(c.pod.node.programs, name) {
		return layout.Command{}, reasonErrImagePull, fmt.Errorf("image %s: %w", c.spec.Image, errNotOurs)
	}
	program, err := c.pod.node.find(name)
	if err != nil {
		return layout.Command{}, reasonErrImagePull, fmt.Errorf("image %s: %w", c.spec.Image, err)
	}
	spec := c.pod.stored()
	env, err := layout.Environment(ctx, spec, c.spec, c.pod.given(c.dir), c.pod)
	if err != nil {
		return layout.Command{}, reasonConfigError, err
	}
	mounted, err := layout.MountsOf(c.spec, c.pod.volumes)
	if err != nil {
		return layout.Command{}, reasonConfigError, err
	}
	if source, ok := mounted.Source(serviceAccountPath); ok {
		env = append(env, corev1.EnvVar{Name: serviceAccountVariable, Value: source})
	}
	root := filepath.Join(c.dir, "root")
	if err := os.MkdirAll(filepath.Join(root, "tmp"), 0o700); err != nil {
		return layout.Command{}, reasonConfigError, fmt.Errorf("making the directory of container %q: %w", c.spec.Name, err)
	}
	resolved, err := layout.Resolve(layout.Program{Name: name, Path: program}, c.spec, env, mounted, c.pod.address.String(), root)
	if err != nil {
		return layout.Command{}, reasonStartError, err
	}
	return resolved, "", nil
}

// systemFiles are what every program may read: names, certificate authorities and
// time zones of the machine.
func systemFiles() []string {
	return []string{
		"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/localtime", "/usr/share/zoneinfo",
		"/etc/ssl/certs", "/etc/pki/tls", "/etc/pki/ca-trust", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
	}
}

// confinement returns the files that the container's program may use: it reads the
// volumes that the container mounts, and changes only its own directory and empty
// directories.
func (c *container) confinement(command layout.Command) process.Confinement {
	if c.pod.node.options.Unconfined {
		return process.Confinement{}
	}
	within := process.Confinement{Program: command.Path, Read: systemFiles(), Write: []string{filepath.Join(c.dir, "root")}}
	// Links lead from the names of a volume's files to their present versions.
	for _, mount := range c.spec.VolumeMounts {
		v := c.pod.volumes[mount.Name]
		if v.Writable() && !mount.ReadOnly {
			within.Write = append(within.Write, v.Dir())
			continue
		}
		within.Read = append(within.Read, v.Dir())
	}
	return within
}

func execOf(command layout.Command) *exec.Cmd {
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Env, cmd.Dir = command.Env, command.Dir
	return cmd
}

// logPath is where one life of the container writes.
func (c *container) logPath(life int32) string {
	return filepath.Join(c.dir, "logs", strconv.Itoa(int(life))+".log")
}

// openLog begins the log of a life and forgets those before the previous one.
func (c *container) openLog(life int32) (*containerlog.File, error) {
	if err := os.MkdirAll(filepath.Join(c.dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of logs: %w", err)
	}
	for _, former := range []int32{life - 2, life} {
		if err := containerlog.Remove(c.logPath(former)); err != nil {
			return nil, err
		}
	}
	log, err := containerlog.Create(c.logPath(life), c.pod.node.now)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.logs, life-2)
	c.logs[life] = log
	return log, nil
}

// end keeps how the program ended.
func (c *container) end(ran *process.Process, began time.Time) {
	now := c.pod.node.now()
	c.change(func(status *corev1.ContainerStatus) {
		c.running = nil
		c.failures++
		if now.Sub(began) >= c.pod.node.backoff.forget || ran.Code() == 0 && c.init {
			c.failures = 1
		}
		end := &corev1.ContainerStateTerminated{
			ExitCode: ran.Code(), Reason: reasonCompleted, ContainerID: status.ContainerID,
			StartedAt: metav1.NewTime(began), FinishedAt: metav1.NewTime(now),
		}
		if ran.Code() != 0 {
			end.Reason = reasonError
		}
		if ran.Code() > process.Signalled {
			end.Signal = ran.Code() - process.Signalled
		}
		status.State = corev1.ContainerState{Terminated: end}
		status.Ready, status.Started = false, new(bool)
	})
}

// watch asks the program how it is until ctx ends.
func (c *container) watch(ctx context.Context, ran *process.Process) *sync.WaitGroup {
	p := &prober{container: c.spec, address: c.pod.address.String(), exec: c.exec}
	wg := &sync.WaitGroup{}
	once := func() {
		if c.spec.ReadinessProbe != nil {
			wg.Go(func() { p.watch(ctx, c.spec.ReadinessProbe, true, c.setReady) })
		}
		if c.spec.LivenessProbe != nil {
			wg.Go(func() { p.watch(ctx, c.spec.LivenessProbe, false, c.judge(ran, "Liveness")) })
		}
	}
	if c.spec.StartupProbe == nil {
		once()
		return wg
	}
	wg.Go(func() {
		started, cancel := context.WithCancel(ctx)
		defer cancel()
		bad := c.judge(ran, "Startup")
		p.watch(started, c.spec.StartupProbe, false, func(err error) {
			if err != nil {
				bad(err)
				return
			}
			cancel()
			c.change(func(status *corev1.ContainerStatus) {
				yes := true
				status.Started, status.Ready = &yes, c.spec.ReadinessProbe == nil
			})
			once()
		})
	})
	return wg
}

func (c *container) setReady(err error) {
	if ready := c.current().Ready; ready == (err == nil) {
		return
	}
	if err != nil {
		c.pod.event(corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: "+err.Error())
	}
	c.change(func(status *corev1.ContainerStatus) { status.Ready = err == nil })
}

// judge ends a program that its probe finds dead; the restart policy says what then.
func (c *container) judge(ran *process.Process, which string) func(error) {
	return func(err error) {
		if err == nil {
			return
		}
		c.pod.event(corev1.EventTypeWarning, "Unhealthy", which+" probe failed, ending the program: "+err.Error())
		ran.Stop(c.pod.grace())
	}
}

// backoff is how long a container waits before it is started again.
type backoff struct {
	// first is the delay after the second end in a row, which doubles up to limit.
	first, limit time.Duration
	// forget is how long a program must have run for its ends before to be forgotten.
	forget time.Duration
}

func (b backoff) after(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(b.first<<min(failures-2, 16), b.limit)
}
