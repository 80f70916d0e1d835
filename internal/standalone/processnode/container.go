package processnode

import (
	"bytes"
	"context"
	"errors"
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

	"karmada.io/karmada/internal/standalone/processnode/layout"
)

// Reasons of container states. They are the same as those of a kubelet.
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

// Names of the output streams in a program's log.
const (
	stdoutName = "stdout"
	stderrName = "stderr"
)

// container is one container of a Pod. It runs the program of the container, and restarts the
// program according to the restart policy.
type container struct {
	pod    *pod
	spec   *corev1.Container
	dir    string
	isInit bool

	mu sync.Mutex
	// status is the container's status in the Pod's status.
	status corev1.ContainerStatus
	// failures counts the consecutive ends of the program. The count determines the delay before
	// the next start.
	failures int
	running  *process
	command  layout.Command
	logs     map[int32]*logFile
}

// newContainer returns a container with the status that an earlier run of the node wrote. If the
// container was running at that time, it is now recorded as ended.
func newContainer(p *pod, spec *corev1.Container, reported *corev1.ContainerStatus, isInit bool) *container {
	c := &container{pod: p, spec: spec, isInit: isInit, dir: filepath.Join(p.dir, "containers", spec.Name), logs: map[int32]*logFile{}}
	c.status = corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, State: waitingState(reasonCreating, "")}
	if isInit {
		c.status.State = waitingState(reasonInitializing, "")
	}
	if reported == nil {
		return c
	}
	c.status = *reported
	if running := reported.State.Running; running != nil {
		c.status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: exitCodeUnknown, Reason: reasonUnknown, Message: "The node was stopped while the program ran.",
			StartedAt: running.StartedAt, FinishedAt: metav1.NewTime(p.node.now()), ContainerID: reported.ContainerID,
		}}
		c.status.Ready = false
		c.status.Started = new(bool)
	}
	return c
}

func waitingState(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// currentStatus returns a copy of the status.
func (c *container) currentStatus() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.status.DeepCopy()
}

// updateStatus changes the container's status and schedules a report.
func (c *container) updateStatus(update func(status *corev1.ContainerStatus)) {
	c.mu.Lock()
	update(&c.status)
	c.mu.Unlock()
	c.pod.requestReport()
}

// shouldRestart reports whether a container that ended is started again.
func shouldRestart(policy corev1.RestartPolicy, isInit bool, code int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return !isInit || code != 0
	}
}

// finalExitCode reports whether the container ended and is not restarted, and returns its exit
// code.
func (c *container) finalExitCode() (code int32, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.status.State.Terminated
	if end == nil {
		return 0, false
	}
	return end.ExitCode, !shouldRestart(c.pod.spec().RestartPolicy, c.isInit, end.ExitCode)
}

// run runs the program until it has ended and is not restarted, or until ctx ends.
func (c *container) run(ctx context.Context) {
	for ctx.Err() == nil {
		if _, ended := c.finalExitCode(); ended {
			return
		}
		if !c.waitBackoff(ctx) {
			return
		}
		c.runOnce(ctx)
	}
}

// waitBackoff waits until the program may be restarted. There is no delay after the first end.
func (c *container) waitBackoff(ctx context.Context) bool {
	c.mu.Lock()
	delay, ended := c.pod.node.backoff.delay(c.failures), c.status.State.Terminated
	c.mu.Unlock()
	if delay == 0 {
		return ctx.Err() == nil
	}
	if ended != nil {
		c.updateStatus(func(status *corev1.ContainerStatus) {
			status.LastTerminationState = corev1.ContainerState{Terminated: ended}
			status.State = waitingState(reasonCrashLoop,
				fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, c.spec.Name, c.pod.key))
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

// runOnce runs the program once and records the result.
func (c *container) runOnce(ctx context.Context) {
	launched, reason, err := c.start(ctx)
	if ctx.Err() != nil && err != nil {
		return
	}
	if err != nil {
		c.recordStartFailure(reason, err)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := c.pod.node.now()
	probes := c.runProbes(ctx, launched)
	select {
	case <-launched.Ended():
	case <-ctx.Done():
		launched.Stop(c.pod.gracePeriod())
	}
	cancel()
	probes.Wait()
	c.recordEnd(ctx, launched, began)
}

// maxStartFailures limits the failure count of a program that cannot be started, and thereby the
// delay before the next start.
const maxStartFailures = 2

// recordStartFailure records why the program could not be started. The caller retries later.
func (c *container) recordStartFailure(reason string, err error) {
	message, isKnown := err.Error(), false
	c.updateStatus(func(status *corev1.ContainerStatus) {
		if reason == reasonErrImagePull && c.failures > 0 {
			reason = reasonPullBackOff
		}
		// A missing object may be created at any time, so the delay between retries stays short, unlike after
		// failures of the program.
		c.failures = min(c.failures+1, maxStartFailures)
		if old := status.State.Waiting; old != nil {
			isKnown = old.Message == message
		}
		if end := status.State.Terminated; end != nil {
			status.LastTerminationState = corev1.ContainerState{Terminated: end}
		}
		status.State = waitingState(reason, message)
	})
	if !isKnown {
		c.pod.recordEvent(corev1.EventTypeWarning, "Failed", message)
	}
}

// start starts the program. If the start fails, reason is the reason for the container status.
func (c *container) start(ctx context.Context) (launched *process, reason string, err error) {
	command, reason, err := c.prepareCommand(ctx)
	if err != nil {
		return nil, reason, err
	}
	c.mu.Lock()
	run := c.status.RestartCount
	if c.status.State.Terminated != nil || c.status.LastTerminationState.Terminated != nil {
		run++
	}
	c.mu.Unlock()
	log, err := c.openLog(run)
	if err != nil {
		return nil, reasonStartError, err
	}
	stdout, stderr := log.Stream(stdoutName), log.Stream(stderrName)
	// Argument 0 is the program's name, by which a file with several programs selects one.
	cmd := &exec.Cmd{Path: command.Path, Args: append([]string{command.Name}, command.Args...), Env: command.Env, Dir: command.Dir}
	launched, err = launch(c.pod.node.spawner, cmd, c.confinement(command), stdout, stderr)
	if err != nil {
		log.Close()
		return nil, reasonStartError, err
	}
	go func() {
		<-launched.Ended()
		stdout.Flush()
		stderr.Flush()
		log.Close()
	}()
	started := c.spec.StartupProbe == nil
	c.updateStatus(func(status *corev1.ContainerStatus) {
		if end := status.State.Terminated; end != nil {
			status.LastTerminationState = corev1.ContainerState{Terminated: end}
		}
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.pod.node.now())}}
		status.RestartCount = run
		status.ContainerID = fmt.Sprintf("process://%d", launched.PID())
		status.ImageID = "file://" + command.Path
		status.Started = &started
		status.Ready = started && c.spec.ReadinessProbe == nil
		c.running, c.command = launched, command
	})
	c.pod.recordEvent(corev1.EventTypeNormal, "Started", fmt.Sprintf("Started %s as process %d", command.Name, launched.PID()))
	return launched, "", nil
}

// prepareCommand finds the program and resolves its arguments and environment.
func (c *container) prepareCommand(ctx context.Context) (_ layout.Command, reason string, err error) {
	selected, err := c.pod.node.selectProgram(Container{Image: c.spec.Image, Command: c.spec.Command})
	if err != nil {
		return layout.Command{}, startFailureReason(err), err
	}
	program, err := c.pod.node.findProgram(selected.file)
	if err != nil {
		return layout.Command{}, reasonErrImagePull, fmt.Errorf("image %s: %w", c.spec.Image, err)
	}
	spec := c.pod.latest()
	env, err := layout.Environment(ctx, spec, c.spec, c.pod.baseEnvironment(c.dir), c.pod)
	if err != nil {
		return layout.Command{}, reasonConfigError, err
	}
	mounted, err := layout.ContainerMounts(c.spec, c.pod.volumes, env)
	if err != nil {
		return layout.Command{}, reasonConfigError, err
	}
	if source, ok := mounted.Source(serviceAccountPath); ok {
		env = append(env, corev1.EnvVar{Name: serviceAccountVariable, Value: source})
	}
	root := filepath.Join(c.dir, "root")
	if err := os.MkdirAll(filepath.Join(root, "tmp"), 0o700); err != nil {
		return layout.Command{}, reasonConfigError, fmt.Errorf("creating the directory of container %q: %w", c.spec.Name, err)
	}
	defaults, err := c.egressArguments()
	if err != nil {
		return layout.Command{}, reasonConfigError, err
	}
	resolved, err := layout.ResolveCommand(layout.Program{Name: selected.name, Path: program, Defaults: defaults}, c.spec, env, mounted,
		c.pod.address.String(), root)
	if err != nil {
		return layout.Command{}, reasonStartError, err
	}
	return resolved, "", nil
}

// startFailureReason returns the reason of a container whose image or command selects no program.
func startFailureReason(err error) string {
	if errors.Is(err, errForeignImage) {
		return reasonErrImagePull
	}
	return reasonStartError
}

// systemFiles returns the files of the machine that every program may read: host names, certificate
// authorities and time zones. /etc/resolv.conf is missing, because its search domains and options do not
// apply to a cluster's names. podenvironment.DNSServerVariable replaces it.
func systemFiles() []string {
	return []string{
		"/etc/hosts", "/etc/nsswitch.conf", "/etc/localtime", "/usr/share/zoneinfo",
		"/etc/ssl/certs", "/etc/pki/tls", "/etc/pki/ca-trust", "/etc/ca-certificates", "/usr/share/ca-certificates",
		"/usr/local/share/ca-certificates",
	}
}

// confinement returns the file access of the container's program. The program can read the mounted
// volumes, and can write only to the directory of its container and to emptyDir volumes.
func (c *container) confinement(command layout.Command) confinement {
	if c.pod.node.options.Unconfined {
		return confinement{}
	}
	confinement := confinement{
		Program: command.Path, Read: slices.Concat(systemFiles(), c.egressFiles()), Write: []string{filepath.Join(c.dir, "root")},
	}
	// Allow access to the volume's whole directory, because its files are links to their current version in
	// the same directory.
	for _, mount := range c.spec.VolumeMounts {
		v := c.pod.volumes[mount.Name]
		if v.IsWritable() && !mount.ReadOnly {
			confinement.Write = append(confinement.Write, v.Dir())
			continue
		}
		confinement.Read = append(confinement.Read, v.Dir())
	}
	return confinement
}

// logPath returns the path of the log of the container's given run.
func (c *container) logPath(run int32) string {
	return filepath.Join(c.dir, "logs", strconv.Itoa(int(run))+".log")
}

// openLog creates the log of a run. It keeps the log of the previous run and deletes older logs.
func (c *container) openLog(run int32) (*logFile, error) {
	if err := os.MkdirAll(filepath.Join(c.dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of logs: %w", err)
	}
	for _, oldRun := range []int32{run - 2, run} {
		if err := removeLog(c.logPath(oldRun)); err != nil {
			return nil, err
		}
	}
	log, err := createLog(c.logPath(run), c.pod.node.now)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.logs, run-2)
	c.logs[run] = log
	return log, nil
}

// recordEnd records how the program ended.
func (c *container) recordEnd(ctx context.Context, launched *process, began time.Time) {
	now, message := c.pod.node.now(), c.terminationMessage(ctx, launched)
	c.updateStatus(func(status *corev1.ContainerStatus) {
		c.running = nil
		c.failures++
		if now.Sub(began) >= c.pod.node.backoff.resetAfter || launched.ExitCode() == 0 && c.isInit {
			c.failures = 1
		}
		end := &corev1.ContainerStateTerminated{
			ExitCode: launched.ExitCode(), Reason: reasonCompleted, Message: message, ContainerID: status.ContainerID,
			StartedAt: metav1.NewTime(began), FinishedAt: metav1.NewTime(now),
		}
		if launched.ExitCode() != 0 {
			end.Reason = reasonError
		}
		if launched.ExitCode() > signalExitCodeBase {
			end.Signal = launched.ExitCode() - signalExitCodeBase
		}
		status.State = corev1.ContainerState{Terminated: end}
		status.Ready, status.Started = false, new(bool)
	})
}

// Limits of a termination message, as in a kubelet.
const (
	maxTerminationLines = 80
	maxTerminationBytes = 2048
)

// terminationMessage returns the end of a failed program's log, if the container requests it. Termination
// message files are not supported.
func (c *container) terminationMessage(ctx context.Context, launched *process) string {
	if launched.ExitCode() == 0 || c.spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	var text bytes.Buffer
	path := c.logPath(c.currentStatus().RestartCount)
	// As in a kubelet, a log that cannot be read yields no message.
	_ = readLog(context.WithoutCancel(ctx), path, nil, logQuery{Tail: maxTerminationLines}, &text)
	return string(text.Bytes()[max(0, text.Len()-maxTerminationBytes):])
}

// runProbes runs the probes of the program until ctx ends.
func (c *container) runProbes(ctx context.Context, launched *process) *sync.WaitGroup {
	p := &prober{container: c.spec, address: c.pod.address.String(), execWithOutput: c.execWithOutput}
	wg := &sync.WaitGroup{}
	startProbes := func() {
		if c.spec.ReadinessProbe != nil {
			wg.Go(func() { p.run(ctx, c.spec.ReadinessProbe, true, c.recordReadinessProbe) })
		}
		if c.spec.LivenessProbe != nil {
			wg.Go(func() { p.run(ctx, c.spec.LivenessProbe, false, c.stopOnFailure(launched, "Liveness")) })
		}
	}
	if c.spec.StartupProbe == nil {
		startProbes()
		return wg
	}
	wg.Go(func() {
		started, cancel := context.WithCancel(ctx)
		defer cancel()
		stopOnFailure := c.stopOnFailure(launched, "Startup")
		p.run(started, c.spec.StartupProbe, false, func(err error) {
			if err != nil {
				stopOnFailure(err)
				return
			}
			cancel()
			c.updateStatus(func(status *corev1.ContainerStatus) {
				yes := true
				status.Started, status.Ready = &yes, c.spec.ReadinessProbe == nil
			})
			startProbes()
		})
	})
	return wg
}

func (c *container) recordReadinessProbe(err error) {
	if ready := c.currentStatus().Ready; ready == (err == nil) {
		return
	}
	if err != nil {
		c.pod.recordEvent(corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: "+err.Error())
	}
	c.updateStatus(func(status *corev1.ContainerStatus) { status.Ready = err == nil })
}

// stopOnFailure returns a probe callback that stops the program when the probe fails. The restart
// policy then decides whether the program is restarted.
func (c *container) stopOnFailure(launched *process, probeName string) func(error) {
	return func(err error) {
		if err == nil {
			return
		}
		c.pod.recordEvent(corev1.EventTypeWarning, "Unhealthy", probeName+" probe failed, stopping the program: "+err.Error())
		launched.Stop(c.pod.gracePeriod())
	}
}

// restartBackoff is the delay before a container is restarted.
type restartBackoff struct {
	// initial is the delay after the second consecutive end. The delay doubles up to max.
	initial, max time.Duration
	// resetAfter is how long a program must run so that earlier ends are no longer counted.
	resetAfter time.Duration
}

func (r restartBackoff) delay(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(r.initial<<min(failures-2, 16), r.max)
}
