package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// measureFirstScheduling starts the scheduler and waits until all bindings have clusters. It returns
// after the last deferred status and the last event, which are not work of the next start.
func (b *bench) measureFirstScheduling(ctx context.Context) error {
	const scenario = "schedule"
	before, err := b.sample(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	scheduler, err := startProgram("the scheduler", b.options.schedulerCommand)
	if err != nil {
		return err
	}
	defer scheduler.stop()
	first, last, err := b.awaitDecisions(ctx, scheduler)
	if err != nil {
		return err
	}
	cpu, err := scheduler.usage()
	if err != nil {
		return err
	}
	after, err := b.sampleSettled(ctx)
	if err != nil {
		return err
	}
	count := float64(b.options.bindings)
	b.report.addRate(scenario, "from the start of the scheduler", last.Sub(start), b.options.bindings, "bindings/s")
	b.report.addRate(scenario, "from the first to the last decision", last.Sub(first), b.options.bindings, "bindings/s")
	b.report.add(scenario, "CPU of the scheduler, per binding", milliseconds(cpu.cpu)/count, "ms")
	b.report.add(scenario, "memory of the scheduler", float64(cpu.rss)/(1<<20), "MiB")
	b.report.addCost(scenario, before, after, b.options.bindings)
	return b.awaitNoWrites(ctx)
}

// measureSchedulerRestart starts the scheduler again, with nothing changed, and counts its writes.
func (b *bench) measureSchedulerRestart(ctx context.Context) error {
	before, err := b.sample(ctx)
	if err != nil {
		return err
	}
	scheduler, err := startProgram("the scheduler", b.options.schedulerCommand)
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
	b.report.add("schedule", "writes after a restart with nothing changed", after.karmadaRequests(before).requests.writes().total(),
		"requests")
	b.report.add("schedule", "CPU of the scheduler for the restart, per binding", milliseconds(cpu.cpu)/float64(b.options.bindings), "ms")
	return nil
}

// schedulerAttempts is the metric of the scheduler that counts decisions.
const schedulerAttempts = "karmada_scheduler_schedule_attempts_total"

// decisionInterval is the interval at which the metrics of the scheduler are read. A watch of the
// bindings would cost the API server more than half a write for each of its events.
const decisionInterval = 250 * time.Millisecond

// awaitDecisions reads the metrics of the scheduler until it has placed all bindings. It returns
// the time before the first decision and the time after the last one, both within decisionInterval.
func (b *bench) awaitDecisions(ctx context.Context, scheduler *program) (first, last time.Time, err error) {
	ticker := time.NewTicker(decisionInterval)
	defer ticker.Stop()
	for {
		before := time.Now()
		// The metrics cannot be read before the scheduler serves them.
		decided, _ := b.decisions(ctx)
		if first.IsZero() && decided > 0 {
			first = before.Add(-decisionInterval)
		}
		if decided >= b.options.bindings && b.checkClusterAssignments(ctx) == nil {
			return first, before, nil
		}
		select {
		case <-ticker.C:
		case <-scheduler.ended:
			return first, last, scheduler.errEnded()
		case <-ctx.Done():
			return first, last, fmt.Errorf("the scheduler made %d decisions for %d bindings: %w", decided, b.options.bindings, context.Cause(ctx))
		}
	}
}

// decisions returns the number of attempts of the scheduler. Some bindings need two attempts.
func (b *bench) decisions(ctx context.Context) (int, error) {
	values, err := readMetrics(ctx, http.DefaultClient, b.options.schedulerMetrics, schedulerAttempts)
	if err != nil {
		return 0, fmt.Errorf("reading the metrics of the scheduler: %w", err)
	}
	return int(values[schedulerAttempts]), nil
}

// checkClusterAssignments reports an error unless all bindings have clusters. The condition Scheduled may follow
// later, because the scheduler leaves it to the status controller, which does not run here.
func (b *bench) checkClusterAssignments(ctx context.Context) error {
	list, err := b.fleet.policies.Resource(bindingResource).Namespace(b.fleet.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing bindings: %w", err)
	}
	placed := 0
	for i := range list.Items {
		if clusters, _, _ := unstructured.NestedSlice(list.Items[i].Object, "spec", "clusters"); len(clusters) > 0 {
			placed++
		}
	}
	if placed != b.options.bindings {
		return fmt.Errorf("%w: %d of %d bindings", errMissingClusters, placed, b.options.bindings)
	}
	return nil
}

var errMissingClusters = errors.New("some bindings have no clusters")

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
