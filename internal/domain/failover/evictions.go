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

// Observations contains the facts outside the binding on which evictions depend. All functions must be
// set. Each function returns false if the result is unknown.
type Observations struct {
	Now time.Time
	// Timeout is the grace period of tasks that do not set one.
	Timeout time.Duration
	// IsStatusCurrent reports whether the cluster is reachable and the workload's health that the
	// cluster reports belongs to the binding's current spec.
	IsStatusCurrent func(cluster string) bool
	// IsCopyGone reports whether the workload's copy in the cluster is deleted or will never run again.
	IsCopyGone func(cluster string) bool
	// IsUnregistered reports whether the cluster is known to be unregistered.
	IsUnregistered func(cluster string) bool
	// CanRunWorkload reports whether the cluster is ready and has no taint that evicts the workload.
	CanRunWorkload func(cluster string) bool
}

// TaskResult contains a task and the reason for the decision about it.
type TaskResult struct {
	Task   workv1alpha2.GracefulEvictionTask
	Reason string
}

// Outcome contains the decisions about all evictions of a binding.
type Outcome struct {
	// Clusters and Tasks are the binding's new targets and new eviction tasks.
	Clusters []workv1alpha2.TargetCluster
	Tasks    []workv1alpha2.GracefulEvictionTask
	// Ended are the finished tasks. Returned are the tasks that are undone, because no other cluster
	// takes the workload and the workload may return to its old cluster.
	Ended, Returned []TaskResult
	// Held are the tasks whose grace period is over but that still wait. Their reasons describe the
	// conditions for which they wait.
	Held []TaskResult
	// NextCheck is when to check again even if nothing changes. Zero means that no check is needed.
	NextCheck time.Time
}

// evictionPass is one pass over a binding's evictions.
type evictionPass struct {
	Observations
	spec   *workv1alpha2.ResourceBindingSpec
	status *workv1alpha2.ResourceBindingStatus
	// isScheduled reports whether the scheduler placed the binding's current generation.
	isScheduled bool
	// isFullyPlaced reports whether the whole workload is scheduled, not counting the clusters to which
	// tasks of this pass return the workload.
	isFullyPlaced bool
	// failedClusters are the clusters in which the workload's current version failed.
	failedClusters sets.Set[string]
	outcome        Outcome
}

// DecideEvictions decides about each of the binding's eviction tasks. It does not modify the binding.
func DecideEvictions(bound binding.Object, c Observations) Outcome {
	spec, status := bound.BindingSpec(), bound.BindingStatus()
	e := &evictionPass{
		Observations: c, spec: spec.DeepCopy(), status: status,
		isScheduled: binding.IsScheduled(bound), isFullyPlaced: IsFullyPlaced(spec),
		failedClusters: ReadFailures(bound, c.Now).AvoidedClusters(),
	}
	for i := range spec.GracefulEvictionTasks {
		e.decideTask(spec.GracefulEvictionTasks[i].DeepCopy())
	}
	e.outcome.Clusters = e.spec.Clusters
	return e.outcome
}

func (e *evictionPass) decideTask(task *workv1alpha2.GracefulEvictionTask) {
	if task.CreationTimestamp.IsZero() {
		task.CreationTimestamp = &metav1.Time{Time: e.Now.UTC().Truncate(time.Second)}
		e.keepTask(task)
		return
	}
	direct := task.PurgeMode == policyv1alpha1.PurgeModeDirectly
	switch suppressed := task.SuppressDeletion; {
	case suppressed != nil && !*suppressed:
		e.finishTask(task, "a user confirmed the end of the eviction")
	case suppressed != nil, task.PurgeMode == policyv1alpha1.PurgeModeNever:
		e.outcome.Tasks = append(e.outcome.Tasks, *task)
	case e.IsUnregistered(task.FromCluster):
		e.finishTask(task, "the cluster is not registered any more")
	case direct && !e.IsCopyGone(task.FromCluster):
		e.holdTask(task, "the copy there still exists, and no other cluster gets the workload before it is deleted")
	case e.isScheduled && isScaledToZero(e.spec):
		e.finishTask(task, "the workload is scaled to 0 replicas")
	case e.isReplaced():
		e.finishTask(task, "the workload is healthy in "+strings.Join(targetNames(e.spec), ", "))
	case e.isOverdue(task) && e.IsCopyGone(task.FromCluster):
		e.finishTask(task, "the grace period is over, and the copy there is deleted")
	case !direct && e.canReturn(task):
		e.restoreTarget(task)
	case e.isOverdue(task) && e.isReplacedFailedCopy(task):
		e.finishTask(task, "the grace period is over, the workload is not healthy there, and it is placed in "+strings.Join(targetNames(e.spec),
			", "))
	case e.isOverdue(task) && e.hasHealthyReplacement(task):
		e.finishTask(task, "the grace period is over, and healthy copies replace it in "+strings.Join(e.healthyTargets(), ", "))
	default:
		e.holdTask(task, e.missingCondition())
	}
}

func (e *evictionPass) finishTask(task *workv1alpha2.GracefulEvictionTask, why string) {
	e.outcome.Ended = append(e.outcome.Ended, TaskResult{*task, why})
}

// keepTask keeps a task and schedules a check at the end of its grace period.
func (e *evictionPass) keepTask(task *workv1alpha2.GracefulEvictionTask) {
	e.outcome.Tasks = append(e.outcome.Tasks, *task)
	if task.SuppressDeletion != nil || task.PurgeMode == policyv1alpha1.PurgeModeNever {
		return
	}
	if due := e.deadline(task); due.After(e.Now) && (e.outcome.NextCheck.IsZero() || due.Before(e.outcome.NextCheck)) {
		e.outcome.NextCheck = due
	}
}

// holdTask keeps a task. If the task's grace period is over, holdTask also records why the task is
// held.
func (e *evictionPass) holdTask(task *workv1alpha2.GracefulEvictionTask, why string) {
	e.keepTask(task)
	if e.isOverdue(task) {
		e.outcome.Held = append(e.outcome.Held, TaskResult{*task, why})
	}
}

func (e *evictionPass) deadline(task *workv1alpha2.GracefulEvictionTask) time.Time {
	timeout := e.Timeout
	if seconds := task.GracePeriodSeconds; seconds != nil {
		timeout = time.Duration(*seconds) * time.Second
	}
	return task.CreationTimestamp.Add(timeout)
}

func (e *evictionPass) isOverdue(task *workv1alpha2.GracefulEvictionTask) bool {
	return !e.Now.Before(e.deadline(task))
}

// isReplaced reports whether the whole workload is healthy in all its current targets.
func (e *evictionPass) isReplaced() bool {
	return e.isScheduled && e.isFullyPlaced && len(e.spec.Clusters) > 0 && len(e.healthyTargets()) == len(e.spec.Clusters)
}

// hasHealthyReplacement reports whether healthy copies replace the evicted copies. For a divided
// workload, it requires as many healthy replicas as all tasks evict. If every cluster has the whole
// workload, it requires one healthy copy.
func (e *evictionPass) hasHealthyReplacement(task *workv1alpha2.GracefulEvictionTask) bool {
	healthy := e.healthyTargets()
	if !e.isFullyPlaced || len(healthy) == 0 {
		return false
	}
	if task.Replicas == nil || !hasDividedReplicas(e.spec) {
		return true
	}
	var evictedReplicas, healthyReplicas int64
	for i := range e.spec.GracefulEvictionTasks {
		each := &e.spec.GracefulEvictionTasks[i]
		if each.Replicas != nil && each.SuppressDeletion == nil && each.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			evictedReplicas += int64(*each.Replicas)
		}
	}
	for _, target := range e.spec.Clusters {
		if slices.Contains(healthy, target.Name) {
			healthyReplicas += int64(target.Replicas)
		}
	}
	return healthyReplicas >= evictedReplicas
}

// healthyTargets returns the targets in which the workload's current version is known to be healthy.
func (e *evictionPass) healthyTargets() []string {
	var clusters []string
	for _, name := range targetNames(e.spec) {
		if reportsHealthy(e.status, name) && e.IsStatusCurrent(name) {
			clusters = append(clusters, name)
		}
	}
	return clusters
}

// reportsHealthy reports whether a cluster to which the workload is applied reports it as healthy.
func reportsHealthy(status *workv1alpha2.ResourceBindingStatus, cluster string) bool {
	return slices.ContainsFunc(status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
		return item.ClusterName == cluster && item.Applied && item.Health == workv1alpha2.ResourceHealthy
	})
}

// isReplacedFailedCopy reports whether the task evicts an unhealthy copy of an application that is
// completely placed in other clusters, and the copy is still not reported as healthy. Such a copy is
// deleted even if the new copies are not healthy either, because the old copy does not work.
func (e *evictionPass) isReplacedFailedCopy(task *workv1alpha2.GracefulEvictionTask) bool {
	return taskKeepsFailedCopy(task) && e.isFullyPlaced && !reportsHealthy(e.status, task.FromCluster)
}

// canReturn reports whether a workload without another cluster may return to its old cluster. This is
// the case if the cause of the eviction no longer exists, if the workload itself was the cause and its
// grace period is over, or if the workload was changed since the eviction. Otherwise the eviction would
// never end, and the old copy would get no changes, not even a fix. An application that failed in
// several clusters returns to the cluster in which it failed last.
func (e *evictionPass) canReturn(task *workv1alpha2.GracefulEvictionTask) bool {
	if e.isFullyPlaced || !e.CanRunWorkload(task.FromCluster) || hasDividedReplicas(e.spec) && IsFullyPlaced(e.spec) {
		return false
	}
	switch task.Producer {
	case workv1alpha2.EvictionProducerTaintManager:
		return true
	case workv1alpha2.EvictionProducerApplicationFailover, workv1alpha2.EvictionProducerClusterApplicationFailover:
		return e.isOverdue(task) && !e.hasLaterFailure(task) || reportsHealthy(e.status, task.FromCluster) ||
			!e.failedClusters.Has(task.FromCluster)
	default:
		return false
	}
}

// hasLaterFailure reports whether the application was evicted from another cluster later, and may
// return to that cluster.
func (e *evictionPass) hasLaterFailure(task *workv1alpha2.GracefulEvictionTask) bool {
	return slices.ContainsFunc(e.spec.GracefulEvictionTasks, func(other workv1alpha2.GracefulEvictionTask) bool {
		return taskKeepsFailedCopy(&other) && e.CanRunWorkload(other.FromCluster) &&
			(other.CreationTimestamp.IsZero() || other.CreationTimestamp.After(task.CreationTimestamp.Time))
	})
}

// restoreTarget makes the task's cluster a target again. The cluster gets its previous replicas, but
// not more than the number of missing replicas.
func (e *evictionPass) restoreTarget(task *workv1alpha2.GracefulEvictionTask) {
	e.outcome.Returned = append(e.outcome.Returned,
		TaskResult{*task, "no other cluster takes the workload, and this cluster can run it again"})
	if HasTarget(e.spec, task.FromCluster) {
		return
	}
	target := workv1alpha2.TargetCluster{Name: task.FromCluster}
	if task.Replicas != nil {
		target.Replicas = *task.Replicas
	}
	if hasDividedReplicas(e.spec) {
		target.Replicas = int32(min(max(missingReplicas(e.spec), 0), int64(target.Replicas)))
	}
	e.spec.Clusters = append(e.spec.Clusters, target)
}

// maxNamedTargets is the maximum number of unhealthy targets that a message names.
const maxNamedTargets = 10

// missingCondition describes the condition for which an eviction waits. The text changes only if the
// condition changes.
func (e *evictionPass) missingCondition() string {
	if len(e.spec.Clusters) == 0 {
		return "no other cluster takes the workload"
	}
	if !IsFullyPlaced(e.spec) {
		return fmt.Sprintf("%d replicas of the workload have no cluster", missingReplicas(e.spec))
	}
	healthy := e.healthyTargets()
	unhealthy := slices.DeleteFunc(targetNames(e.spec), func(name string) bool { return slices.Contains(healthy, name) })
	if len(unhealthy) == 0 {
		return "the scheduler has not confirmed the placement yet"
	}
	more := ""
	if left := len(unhealthy) - maxNamedTargets; left > 0 {
		unhealthy, more = unhealthy[:maxNamedTargets], fmt.Sprintf(" and %d more", left)
	}
	return "the workload is not known to be healthy in " + strings.Join(unhealthy, ", ") + more
}
