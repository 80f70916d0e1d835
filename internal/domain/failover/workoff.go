package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// Circumstances are what bears on evictions beside what the binding says. None of
// the functions is nil; each answers false for what is not known.
type Circumstances struct {
	Now time.Time
	// Timeout is how long a task takes at most that does not say it itself.
	Timeout time.Duration
	// Proven tells that what is said of the health of the workload in a target is
	// about what the binding says now, and of a cluster that can be asked.
	Proven func(cluster string) bool
	// Emptied tells that the workload's copy in a cluster is gone, or will never run
	// again.
	Emptied func(cluster string) bool
	// Removed tells that a cluster is known to be registered no more.
	Removed func(cluster string) bool
	// Habitable tells that a cluster is ready and no taint drives the workload out.
	Habitable func(cluster string) bool
}

// Ended is a task that has come to its end, and why.
type Ended struct {
	Task workv1alpha2.GracefulEvictionTask
	Why  string
}

// Outcome is what is to become of the evictions of a binding.
type Outcome struct {
	// Clusters and Tasks are what the binding is to have.
	Clusters []workv1alpha2.TargetCluster
	Tasks    []workv1alpha2.GracefulEvictionTask
	// Ended are the tasks that are done, Returned those that are undone: nothing
	// takes the workload, and the cluster may have it again.
	Ended, Returned []Ended
	// Held are tasks whose time is over, and what they wait for.
	Held []Ended
	// Next is when to look again if nothing happens; zero for never.
	Next time.Time
}

// eviction is one look at the evictions of a binding.
type eviction struct {
	Circumstances
	spec   *workv1alpha2.ResourceBindingSpec
	status *workv1alpha2.ResourceBindingStatus
	// confirmed tells that the scheduler knows the present generation.
	confirmed bool
	// placed tells that all of the workload has clusters, not counting what returns.
	placed bool
	// failed are the clusters in which the workload failed as it is now.
	failed  sets.Set[string]
	outcome Outcome
}

// WorkOff decides about every task of a binding. The binding is not changed.
func WorkOff(bound binding.Object, c Circumstances) Outcome {
	spec, status := bound.BindingSpec(), bound.BindingStatus()
	e := &eviction{
		Circumstances: c, spec: spec.DeepCopy(), status: status,
		confirmed: status.SchedulerObservedGeneration == bound.GetGeneration(), placed: Placed(spec),
		failed: FailuresOf(bound, c.Now).Avoided(),
	}
	for i := range spec.GracefulEvictionTasks {
		e.work(spec.GracefulEvictionTasks[i].DeepCopy())
	}
	e.outcome.Clusters = e.spec.Clusters
	return e.outcome
}

// work decides about one task.
func (e *eviction) work(task *workv1alpha2.GracefulEvictionTask) {
	if task.CreationTimestamp.IsZero() {
		task.CreationTimestamp = &metav1.Time{Time: e.Now.UTC().Truncate(time.Second)}
		e.keep(task)
		return
	}
	direct := task.PurgeMode == policyv1alpha1.PurgeModeDirectly
	switch suppressed := task.SuppressDeletion; {
	case suppressed != nil && !*suppressed:
		e.end(task, "its end was confirmed")
	case suppressed != nil, task.PurgeMode == policyv1alpha1.PurgeModeNever:
		e.outcome.Tasks = append(e.outcome.Tasks, *task)
	case e.Removed(task.FromCluster):
		e.end(task, "the cluster is registered no more")
	case direct && !e.Emptied(task.FromCluster):
		e.wait(task, "its copy there is not gone yet, and no other cluster gets the workload before")
	case e.replaced():
		e.end(task, "the workload is healthy in "+strings.Join(names(e.spec), ", "))
	case e.late(task) && e.Emptied(task.FromCluster):
		e.end(task, "its time is over, and the copy there is gone")
	case !direct && e.returns(task):
		e.takeBack(task)
	case e.late(task) && e.abandoned(task):
		e.end(task, "its time is over, the workload is not healthy there, and it has "+strings.Join(names(e.spec), ", "))
	case e.late(task) && e.relieved(task):
		e.end(task, "its time is over, and healthy copies stand in for it in "+strings.Join(e.healthy(), ", "))
	default:
		e.wait(task, e.lacks())
	}
}

func (e *eviction) end(task *workv1alpha2.GracefulEvictionTask, why string) {
	e.outcome.Ended = append(e.outcome.Ended, Ended{*task, why})
}

// keep leaves a task and looks again when its time is over.
func (e *eviction) keep(task *workv1alpha2.GracefulEvictionTask) {
	e.outcome.Tasks = append(e.outcome.Tasks, *task)
	if task.SuppressDeletion != nil || task.PurgeMode == policyv1alpha1.PurgeModeNever {
		return
	}
	if due := e.due(task); due.After(e.Now) && (e.outcome.Next.IsZero() || due.Before(e.outcome.Next)) {
		e.outcome.Next = due
	}
}

// wait keeps a task, and tells what it waits for once its time is over.
func (e *eviction) wait(task *workv1alpha2.GracefulEvictionTask, why string) {
	e.keep(task)
	if e.late(task) {
		e.outcome.Held = append(e.outcome.Held, Ended{*task, why})
	}
}

func (e *eviction) due(task *workv1alpha2.GracefulEvictionTask) time.Time {
	timeout := e.Timeout
	if seconds := task.GracePeriodSeconds; seconds != nil {
		timeout = time.Duration(*seconds) * time.Second
	}
	return task.CreationTimestamp.Add(timeout)
}

func (e *eviction) late(task *workv1alpha2.GracefulEvictionTask) bool {
	return !e.Now.Before(e.due(task))
}

// replaced tells that the whole workload is healthy where it is to be now.
func (e *eviction) replaced() bool {
	return e.confirmed && e.placed && len(e.spec.Clusters) > 0 && len(e.healthy()) == len(e.spec.Clusters)
}

// relieved tells that healthy copies stand in for what is leaving: as many replicas
// as leave altogether, or any copy of a workload that every cluster has whole.
func (e *eviction) relieved(task *workv1alpha2.GracefulEvictionTask) bool {
	healthy := e.healthy()
	if !e.placed || len(healthy) == 0 {
		return false
	}
	if task.Replicas == nil || !counted(e.spec) {
		return true
	}
	var leaving, standing int64
	for i := range e.spec.GracefulEvictionTasks {
		each := &e.spec.GracefulEvictionTasks[i]
		if each.Replicas != nil && each.SuppressDeletion == nil && each.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			leaving += int64(*each.Replicas)
		}
	}
	for _, target := range e.spec.Clusters {
		if slices.Contains(healthy, target.Name) {
			standing += int64(target.Replicas)
		}
	}
	return standing >= leaving
}

// healthy are the targets in which the workload is known to be healthy as it is to
// be now.
func (e *eviction) healthy() []string {
	var clusters []string
	for _, name := range names(e.spec) {
		if e.says(name, workv1alpha2.ResourceHealthy) && e.Proven(name) {
			clusters = append(clusters, name)
		}
	}
	return clusters
}

// says tells whether a cluster that has the workload reports this health.
func (e *eviction) says(cluster string, health workv1alpha2.ResourceHealth) bool {
	return slices.ContainsFunc(e.status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
		return item.ClusterName == cluster && item.Applied && item.Health == health
	})
}

// abandoned reports whether an application, whose replicas all have other clusters, left this
// one for being unhealthy and is not reported healthy there. Its old copy is worth
// nothing, so it goes even if the new ones are not healthy either.
func (e *eviction) abandoned(task *workv1alpha2.GracefulEvictionTask) bool {
	return keepsFailedCopy(task) && e.placed && !e.says(task.FromCluster, workv1alpha2.ResourceHealthy)
}

// returns reports whether a workload for which there is no other place may have its old
// one again: what drove it out is over, or was the workload itself and has had its
// time, or has been changed since. Without that it would be kept there for good, and
// get no change any more, not even the one that mends it. An application that failed
// in one cluster after the other returns to the last of them.
func (e *eviction) returns(task *workv1alpha2.GracefulEvictionTask) bool {
	if e.placed || !e.Habitable(task.FromCluster) || counted(e.spec) && Placed(e.spec) {
		return false
	}
	switch task.Producer {
	case workv1alpha2.EvictionProducerTaintManager:
		return true
	case workv1alpha2.EvictionProducerApplicationFailover, workv1alpha2.EvictionProducerClusterApplicationFailover:
		return e.late(task) && !e.failedLater(task) || e.says(task.FromCluster, workv1alpha2.ResourceHealthy) || !e.failed.Has(task.FromCluster)
	default:
		return false
	}
}

// failedLater reports whether the application left another cluster, which may have it
// again, after this one.
func (e *eviction) failedLater(task *workv1alpha2.GracefulEvictionTask) bool {
	return slices.ContainsFunc(e.spec.GracefulEvictionTasks, func(other workv1alpha2.GracefulEvictionTask) bool {
		return keepsFailedCopy(&other) && e.Habitable(other.FromCluster) &&
			(other.CreationTimestamp.IsZero() || other.CreationTimestamp.After(task.CreationTimestamp.Time))
	})
}

// takeBack makes the cluster a target again, with as many replicas as it had and
// are still missing.
func (e *eviction) takeBack(task *workv1alpha2.GracefulEvictionTask) {
	e.outcome.Returned = append(e.outcome.Returned, Ended{*task, "no other cluster takes the workload, and this one may have it again"})
	if Targets(e.spec, task.FromCluster) {
		return
	}
	target := workv1alpha2.TargetCluster{Name: task.FromCluster}
	if task.Replicas != nil {
		target.Replicas = *task.Replicas
	}
	if counted(e.spec) {
		target.Replicas = int32(min(max(missing(e.spec), 0), int64(target.Replicas)))
	}
	e.spec.Clusters = append(e.spec.Clusters, target)
}

// namedTargets is how many targets are named that are not healthy.
const namedTargets = 10

// lacks tells what an eviction waits for. It stays the same as long as nothing
// changes.
func (e *eviction) lacks() string {
	if len(e.spec.Clusters) == 0 {
		return "no other cluster takes the workload"
	}
	if !Placed(e.spec) {
		return fmt.Sprintf("%d of its replicas have no cluster", missing(e.spec))
	}
	healthy := e.healthy()
	unhealthy := slices.DeleteFunc(names(e.spec), func(name string) bool { return slices.Contains(healthy, name) })
	if len(unhealthy) == 0 {
		return "the scheduler has not confirmed the placement yet"
	}
	more := ""
	if left := len(unhealthy) - namedTargets; left > 0 {
		unhealthy, more = unhealthy[:namedTargets], fmt.Sprintf(" and %d more", left)
	}
	return "the workload is not known to be healthy in " + strings.Join(unhealthy, ", ") + more
}
