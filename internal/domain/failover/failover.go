// Package failover answers: does a workload leave a cluster, and when may its old
// copy go?
//
// Cluster and Application say why a workload leaves, Evict writes that into a
// binding, and WorkOff tells of each eviction under way whether it has come to its
// end.
//
// Invariants: everything is a pure function of its arguments; an eviction moves no
// replica that is not in the task; the old copy of a workload that leaves
// Gracefully goes only when a user says so, when its cluster is gone, or when
// healthy copies stand in for it: neither an empty placement nor the end of the
// time is a reason by itself; what is not known keeps the old copy. The one exception
// is a copy that an application left for being unhealthy there: it goes at the end of
// its time if it is not healthy again and the application has other clusters.
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

// Eviction is why and how a workload leaves one cluster.
type Eviction struct {
	From      string
	PurgeMode policyv1alpha1.PurgeMode
	Reason    string
	Producer  string
	// Message says to people why.
	Message string
	// GracePeriodSeconds is the longest time that it takes; nil leaves that to the
	// operator.
	GracePeriodSeconds *int32
	// State are the labels that the workload gets in its next cluster, and Before
	// the clusters that it was in, which get none.
	State  map[string]string
	Before []string
}

// Describe names an eviction to users: the cluster, the reason and the purge mode.
func (e Eviction) Describe() string {
	return Describe(&workv1alpha2.GracefulEvictionTask{FromCluster: e.From, Reason: e.Reason, PurgeMode: e.PurgeMode, Message: e.Message})
}

// messageBytes is the longest message that a task may have.
const messageBytes = 1024

// Evict takes a cluster off the targets of a binding and notes the task of emptying
// it, unless there is one already. It reports whether the cluster was a target;
// otherwise nothing is changed.
//
// A task whose purge mode is Never waits for a user, whoever makes it.
func Evict(spec *workv1alpha2.ResourceBindingSpec, e Eviction) (evicted bool) {
	var replicas int32
	var staying []workv1alpha2.TargetCluster
	for _, target := range spec.Clusters {
		if target.Name != e.From {
			staying = append(staying, target)
			continue
		}
		replicas += target.Replicas
		evicted = true
	}
	if !evicted {
		return false
	}
	spec.Clusters = staying
	if Evicting(spec, e.From) {
		return true
	}
	made := workv1alpha2.GracefulEvictionTask{
		FromCluster: e.From, PurgeMode: e.PurgeMode, Reason: e.Reason, Producer: e.Producer,
		Message: conditions.Shorten(e.Message, messageBytes), GracePeriodSeconds: e.GracePeriodSeconds,
		PreservedLabelState: e.State, ClustersBeforeFailover: e.Before,
	}
	if replicas > 0 {
		made.Replicas = &replicas
	}
	if e.PurgeMode == policyv1alpha1.PurgeModeNever {
		made.SuppressDeletion = new(true)
	}
	spec.GracefulEvictionTasks = append(slices.Clone(spec.GracefulEvictionTasks), made)
	return true
}

// Evicting tells whether a task is to empty the cluster.
func Evicting(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool {
		return task.FromCluster == cluster
	})
}

// Targets tells whether the cluster is one that the workload was scheduled to.
func Targets(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.Clusters, func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster })
}

// Placed tells whether the whole workload has clusters to run in: one at least,
// and room for all replicas if they are divided.
func Placed(spec *workv1alpha2.ResourceBindingSpec) bool {
	return len(spec.Clusters) > 0 && missing(spec) <= 0
}

// missing is how many replicas of a divided workload have no cluster.
func missing(spec *workv1alpha2.ResourceBindingSpec) int64 {
	if !counted(spec) {
		return 0
	}
	left := int64(spec.Replicas)
	for _, target := range spec.Clusters {
		left -= int64(target.Replicas)
	}
	return left
}

// counted tells whether the replicas of the targets add up to those of the
// workload. Sets of components are placed as a whole.
func counted(spec *workv1alpha2.ResourceBindingSpec) bool {
	return binding.Divided(spec) && binding.IsWorkload(spec) && len(spec.Components) <= 1
}

// names are the targets in their order.
func names(spec *workv1alpha2.ResourceBindingSpec) []string {
	clusters := make([]string, len(spec.Clusters))
	for i := range spec.Clusters {
		clusters[i] = spec.Clusters[i].Name
	}
	return clusters
}

// Describe names a task to people.
func Describe(task *workv1alpha2.GracefulEvictionTask) string {
	mode := task.PurgeMode
	if mode == "" {
		mode = policyv1alpha1.PurgeModeGracefully
	}
	said := fmt.Sprintf("from cluster %s (%s, %s)", task.FromCluster, task.Reason, mode)
	if message := strings.TrimSpace(task.Message); message != "" {
		said += ": " + message
	}
	return said
}
