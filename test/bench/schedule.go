package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// schedule measures the scheduler alone, as a separate program: Clusters that are only objects, and
// bindings that exist before the scheduler starts. No controller of Karmada may run, because
// controllers would mark these Clusters as unreachable and write Works.
func (b *bench) schedule(ctx context.Context) (err error) {
	if err := b.fleet.createNamespace(ctx); err != nil {
		return err
	}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.options.timeout)
		defer cancel()
		err = errors.Join(err, b.removeClusterObjects(cleanup))
	}()
	if err := b.createClusterObjects(ctx); err != nil {
		return err
	}
	if err := b.createBindings(ctx); err != nil {
		return err
	}
	if err := b.measureFirstScheduling(ctx); err != nil {
		return err
	}
	return b.measureSchedulerRestart(ctx)
}

// measureFirstScheduling starts the scheduler and waits until all bindings are scheduled.
func (b *bench) measureFirstScheduling(ctx context.Context) error {
	const scenario = "schedule"
	watched := newDecisionTracker(b.options.bindings)
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	if err := watched.start(watching, b.fleet); err != nil {
		return err
	}
	before, err := b.sample(ctx)
	if err != nil {
		return err
	}
	ownBefore, start := ownUsage(), time.Now()
	scheduler, err := b.startScheduler()
	if err != nil {
		return err
	}
	defer scheduler.stop()
	if err := watched.wait(ctx, scheduler.ended); err != nil {
		return err
	}
	cpu, err := scheduler.usage()
	if err != nil {
		return err
	}
	ownCPU := ownUsage() - ownBefore
	after, err := b.sampleSettled(ctx)
	if err != nil {
		return err
	}
	count := float64(b.options.bindings)
	b.report.addRate(scenario, "from the start of the scheduler", watched.last.Sub(start), b.options.bindings, "bindings/s")
	b.report.addRate(scenario, "from the first to the last decision", watched.last.Sub(watched.first), b.options.bindings, "bindings/s")
	b.report.add(scenario, "CPU of the scheduler, per binding", milliseconds(cpu.cpu)/count, "ms")
	b.report.add(scenario, "memory of the scheduler", float64(cpu.rss)/(1<<20), "MiB")
	b.report.add(scenario, "CPU of this program, per binding", milliseconds(ownCPU)/count, "ms")
	b.report.addCost(scenario, before, after, b.options.bindings)
	b.report.add(scenario, "events, per binding", (after.karmada.events-before.karmada.events)/count, "requests")
	return nil
}

// measureSchedulerRestart starts the scheduler again, with nothing changed, and counts its writes.
func (b *bench) measureSchedulerRestart(ctx context.Context) error {
	before, err := b.sample(ctx)
	if err != nil {
		return err
	}
	scheduler, err := b.startScheduler()
	if err != nil {
		return err
	}
	defer scheduler.stop()
	after, err := b.sampleSettled(ctx)
	if err != nil {
		return err
	}
	cpu, err := scheduler.usage()
	if err != nil {
		return err
	}
	b.report.add("schedule", "writes after a restart with nothing changed", after.karmadaWrites(before).total(), "requests")
	b.report.add("schedule", "CPU of the scheduler for the restart, per binding", milliseconds(cpu.cpu)/float64(b.options.bindings), "ms")
	return nil
}

// schedulerProcess is the scheduler that this program started.
type schedulerProcess struct {
	command *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

func (b *bench) startScheduler() (*schedulerProcess, error) {
	// The shell replaces itself, so the process ID is that of the scheduler.
	command := exec.Command("/bin/sh", "-c", "exec "+b.options.schedulerCommand)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the scheduler: %w", err)
	}
	p := &schedulerProcess{command: command, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = command.Wait() // an exit before the end of the measurement is reported by decisionTracker.wait
	}()
	return p, nil
}

func (p *schedulerProcess) usage() (usage, error) {
	used, err := processReader{proc: os.DirFS("/proc")}.usage(p.command.Process.Pid)
	if err != nil {
		return usage{}, fmt.Errorf("measuring the scheduler: %w", err)
	}
	return used, nil
}

// stop stops the scheduler and waits for its end.
func (p *schedulerProcess) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // an error means that the process has ended
	<-p.ended
}

// ownUsage returns the CPU time of this program.
func ownUsage() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// decisionTracker watches ResourceBindings and records when they are scheduled.
type decisionTracker struct {
	want int
	done chan struct{} // closed when all bindings are scheduled

	mu          sync.Mutex
	scheduled   map[string]bool
	first, last time.Time
}

func newDecisionTracker(want int) *decisionTracker {
	return &decisionTracker{want: want, done: make(chan struct{}), scheduled: map[string]bool{}}
}

// observedBinding contains the fields of a ResourceBinding that the measurement needs. Decoding
// only these fields leaves more of the machine to the programs that are measured.
type observedBinding struct {
	Metadata struct {
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (o *observedBinding) isScheduled() bool {
	for _, condition := range o.Status.Conditions {
		if condition.Type == "Scheduled" {
			return condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == o.Metadata.Generation
		}
	}
	return false
}

// start begins to watch. It returns after the API server accepted the watch.
func (d *decisionTracker) start(ctx context.Context, f *fleet) error {
	stream, err := bindingsRequest(f.karmada.typed.Discovery().RESTClient(), f.namespace).Param("watch", "true").Stream(ctx)
	if err != nil {
		return fmt.Errorf("watching bindings: %w", err)
	}
	go func() {
		defer stream.Close()
		decoder := json.NewDecoder(stream)
		for {
			var event struct {
				Object observedBinding `json:"object"`
			}
			if decoder.Decode(&event) != nil {
				return
			}
			d.observe(&event.Object, time.Now())
		}
	}()
	return nil
}

func bindingsRequest(client rest.Interface, namespace string) *rest.Request {
	return client.Get().AbsPath("/apis/"+bindingResource.GroupVersion().String(), "namespaces", namespace, bindingResource.Resource)
}

func (d *decisionTracker) observe(bound *observedBinding, at time.Time) {
	if !bound.isScheduled() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.scheduled[bound.Metadata.Name] {
		return
	}
	d.scheduled[bound.Metadata.Name] = true
	if d.first.IsZero() {
		d.first = at
	}
	d.last = at
	if len(d.scheduled) == d.want {
		close(d.done)
	}
}

var errSchedulerEnded = errors.New("the scheduler has ended")

// wait returns when all bindings are scheduled.
func (d *decisionTracker) wait(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-d.done:
		return nil
	case <-ended:
		return errSchedulerEnded
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		return fmt.Errorf("%d of %d bindings are scheduled: %w", len(d.scheduled), d.want, context.Cause(ctx))
	}
}

// createClusterObjects creates Clusters without members behind them.
func (b *bench) createClusterObjects(ctx context.Context) error {
	clusters := b.fleet.policies.Resource(clusterResource)
	for i := range b.options.clusterObjects {
		object := clusterObject(i)
		status := object.Object["status"]
		created, err := clusters.Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating Cluster %s: %w", object.GetName(), err)
		}
		created.Object["status"] = status
		if _, err := clusters.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("setting the status of Cluster %s: %w", object.GetName(), err)
		}
	}
	return nil
}

func (b *bench) removeClusterObjects(ctx context.Context) error {
	var errs []error
	for i := range b.options.clusterObjects {
		err := b.fleet.policies.Resource(clusterResource).Delete(ctx, clusterObject(i).GetName(), metav1.DeleteOptions{})
		errs = append(errs, ignoreNotFound(err))
	}
	return errors.Join(errs...)
}

// createBindings creates the bindings that the detector would create for Deployments.
func (b *bench) createBindings(ctx context.Context) error {
	bindings := b.fleet.policies.Resource(bindingResource).Namespace(b.fleet.namespace)
	numbers := make(map[string]int, b.options.bindings)
	names := numberedNames("web", b.options.bindings)
	for i, name := range names {
		numbers[name] = i
	}
	return b.forEach(names, func(name string) error {
		_, err := bindings.Create(ctx, pendingBinding(b.fleet.namespace, name, numbers[name]), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating ResourceBinding %s: %w", name, err)
		}
		return nil
	})
}
