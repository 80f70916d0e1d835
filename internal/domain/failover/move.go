package failover

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// Move replaces a binding's targets when a scheduler moves the workload to other clusters. Each cluster
// that loses its copy to other clusters gets an eviction task, so that its copy stays until the
// replacement is healthy. A cluster that is a target again loses the scheduler's task.
//
// A cluster gets no task if no other cluster got replicas for it, for example after the template was
// scaled down; if it is known to have no replicas of a divided workload; or if leavesAtOnce reports
// that the cluster is being unregistered or that a user excluded it.
func Move(spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster, leavesAtOnce func(cluster string) bool,
	now time.Time) {
	// Before the first scheduling of replicas, the replicas of the clusters are not known.
	before, areReplicasKnown := spec.Clusters, !binding.AwaitsReplicas(spec)
	spec.Clusters = targets
	spec.GracefulEvictionTasks = slices.DeleteFunc(slices.Clone(spec.GracefulEvictionTasks),
		func(task workv1alpha2.GracefulEvictionTask) bool {
			return task.Producer == workv1alpha2.EvictionProducerScheduler && HasTarget(spec, task.FromCluster)
		})
	gaining := binding.GainingClusters(before, targets)
	if len(gaining) == 0 {
		return
	}
	for _, target := range before {
		isEmpty := target.Replicas == 0 && areReplicasKnown && hasDividedReplicas(spec)
		if isEmpty || HasTarget(spec, target.Name) || IsEvicting(spec, target.Name) || leavesAtOnce(target.Name) {
			continue
		}
		task := workv1alpha2.GracefulEvictionTask{
			FromCluster: target.Name, PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: workv1alpha2.EvictionReasonRescheduled,
			Producer: workv1alpha2.EvictionProducerScheduler, CreationTimestamp: &metav1.Time{Time: now.UTC().Truncate(time.Second)},
			Message: conditions.Truncate("the scheduler chose "+strings.Join(gaining, ", "), maxMessageBytes),
		}
		if target.Replicas > 0 {
			task.Replicas = &target.Replicas
		}
		spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks, task)
	}
}
