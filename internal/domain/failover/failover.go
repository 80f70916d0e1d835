// Package failover decides whether a workload is evicted from a cluster, and when its old copy may be
// deleted.
//
// ClusterEviction and ApplicationEviction return an eviction with its reason, Evict writes the eviction
// into a binding, and DecideEvictions decides for each eviction in progress whether it is finished.
//
// Invariants:
//   - Every function is pure. An eviction moves only the replicas in its task.
//   - The old copy of a workload that is evicted with purge mode Gracefully is deleted only if a user
//     confirms the deletion, if the cluster is unregistered, or if healthy copies replace the old copy.
//     An empty placement or the end of the grace period alone is not sufficient. If the status is
//     unknown, the old copy is kept.
//   - One exception: a copy that application failover evicted because it was unhealthy is deleted at
//     the end of the grace period if the copy is not healthy again and the workload has other clusters.
package failover

import (
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// Eviction describes why and how a workload is evicted from one cluster.
type Eviction struct {
	From      string
	PurgeMode policyv1alpha1.PurgeMode
	Reason    string
	Producer  string
	// Message describes the cause to users.
	Message string
	// GracePeriodSeconds is the maximum duration of the eviction. Nil selects the operator's default.
	GracePeriodSeconds *int32
	// PreservedLabels are the labels that the workload gets in its next cluster. ClustersBefore are its
	// clusters before the eviction, which do not get the labels.
	PreservedLabels map[string]string
	ClustersBefore  []string
}

// Describe describes the eviction to users: the cluster, the reason and the purge mode.
func (e Eviction) Describe() string {
	return DescribeTask(&workv1alpha2.GracefulEvictionTask{FromCluster: e.From, Reason: e.Reason, PurgeMode: e.PurgeMode, Message: e.Message})
}

// maxMessageBytes is the maximum length of a task's message, in bytes.
const maxMessageBytes = 1024

// Evict removes the eviction's cluster from the binding's targets and adds an eviction task, unless the
// cluster already has a task. It reports whether the cluster was a target. If not, Evict changes
// nothing.
//
// A task with the purge mode Never waits for a user's confirmation.
func Evict(spec *workv1alpha2.ResourceBindingSpec, e Eviction) (evicted bool) {
	var replicas int32
	var remaining []workv1alpha2.TargetCluster
	for _, target := range spec.Clusters {
		if target.Name != e.From {
			remaining = append(remaining, target)
			continue
		}
		replicas += target.Replicas
		evicted = true
	}
	if !evicted {
		return false
	}
	spec.Clusters = remaining
	if IsEvicting(spec, e.From) {
		return true
	}
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: e.From, PurgeMode: e.PurgeMode, Reason: e.Reason, Producer: e.Producer,
		Message: conditions.Truncate(e.Message, maxMessageBytes), GracePeriodSeconds: e.GracePeriodSeconds,
		PreservedLabelState: e.PreservedLabels, ClustersBeforeFailover: e.ClustersBefore,
	}
	if replicas > 0 {
		task.Replicas = &replicas
	}
	if e.PurgeMode == policyv1alpha1.PurgeModeNever {
		task.SuppressDeletion = new(true)
	}
	spec.GracefulEvictionTasks = append(slices.Clone(spec.GracefulEvictionTasks), task)
	return true
}

// IsEvicting reports whether the cluster has an eviction task.
func IsEvicting(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool {
		return task.FromCluster == cluster
	})
}

// HasTarget reports whether the workload is scheduled to the cluster.
func HasTarget(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.Clusters, func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster })
}

// IsFullyPlaced reports whether the workload is completely scheduled. It must be scheduled to at
// least one cluster. If the replicas are divided, all replicas must be scheduled.
func IsFullyPlaced(spec *workv1alpha2.ResourceBindingSpec) bool {
	return len(spec.Clusters) > 0 && missingReplicas(spec) <= 0
}

// HasHealthyCopies reports whether the binding's workload is completely scheduled, and all its clusters
// report it as healthy. A workload that is scaled to 0 needs no copy.
func HasHealthyCopies(bound binding.Object) bool {
	spec := bound.BindingSpec()
	targets := binding.TargetClusters(spec)
	if len(targets) == 0 {
		return isScaledToZero(spec)
	}
	return missingReplicas(spec) <= 0 && !slices.ContainsFunc(targets, func(target workv1alpha2.TargetCluster) bool {
		return !reportsHealthy(bound.BindingStatus(), target.Name)
	})
}

// isScaledToZero reports whether no cluster has the workload because it has no replicas.
func isScaledToZero(spec *workv1alpha2.ResourceBindingSpec) bool {
	return len(spec.Clusters) == 0 && hasDividedReplicas(spec) && spec.Replicas == 0
}

// missingReplicas returns how many replicas of a divided workload are not scheduled to any cluster.
func missingReplicas(spec *workv1alpha2.ResourceBindingSpec) int64 {
	if !hasDividedReplicas(spec) {
		return 0
	}
	left := int64(spec.Replicas)
	for _, target := range spec.Clusters {
		left -= int64(target.Replicas)
	}
	return left
}

// hasDividedReplicas reports whether the targets' replicas must add up to the workload's replicas. Sets
// of components are not divided.
func hasDividedReplicas(spec *workv1alpha2.ResourceBindingSpec) bool {
	return binding.IsDivided(spec) && binding.IsWorkload(spec) && len(spec.Components) <= 1
}

// targetNames returns the names of the targets in their order in the spec.
func targetNames(spec *workv1alpha2.ResourceBindingSpec) []string {
	clusters := make([]string, len(spec.Clusters))
	for i := range spec.Clusters {
		clusters[i] = spec.Clusters[i].Name
	}
	return clusters
}

// DescribeTask describes the task to users: the cluster, the reason and the purge mode.
func DescribeTask(task *workv1alpha2.GracefulEvictionTask) string {
	mode := task.PurgeMode
	if mode == "" {
		mode = policyv1alpha1.PurgeModeGracefully
	}
	text := fmt.Sprintf("from cluster %s (%s, %s)", task.FromCluster, task.Reason, mode)
	if message := strings.TrimSpace(task.Message); message != "" {
		text += ": " + message
	}
	return text
}
