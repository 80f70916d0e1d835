package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/placement"
)

// evict evicts a workload from the clusters whose NoExecute taints it does not tolerate. A workload
// that tolerates a taint for some time is evicted too, because the result is the final state.
func (r *run) evict(of *subject) {
	if of.bound == nil || of.bound.GetDeletionTimestamp() != nil {
		return
	}
	for _, target := range slices.Clone(of.bound.BindingSpec().Clusters) {
		cluster := r.cluster(target.Name)
		if cluster == nil || cluster.DeletionTimestamp != nil {
			continue // the scheduler removes a terminating cluster
		}
		deadline, ok := failover.EvictionDeadline(cluster, of.bound)
		if !ok || deadline.Taint == nil {
			continue
		}
		eviction, err := failover.ClusterEviction(of.bound, target.Name, deadline, policyv1alpha1.PurgeModeGracefully, false)
		if err != nil {
			of.failure = finding{ReasonEvictionFailed, err.Error()}
			return
		}
		failover.Evict(of.edit().BindingSpec(), eviction)
		of.leaving[target.Name] = describeEviction(eviction, deadline.Until.Sub(r.Now))
	}
}

func describeEviction(eviction failover.Eviction, after time.Duration) string {
	text := "evicted: " + eviction.Message
	if after > 0 {
		text = fmt.Sprintf("evicted after %s: %s", after.Round(time.Second), eviction.Message)
	}
	if eviction.PurgeMode != policyv1alpha1.PurgeModeDirectly {
		text += "; the old copy stays until healthy copies replace it"
	}
	return text
}

// scheduleAll schedules the selected bindings in the order of their priority.
func (r *run) scheduleAll() {
	queue := slices.Clone(r.sorted)
	slices.SortStableFunc(queue, func(a, b *subject) int { return cmp.Compare(priorityOf(b), priorityOf(a)) })
	for _, each := range queue {
		if each.isSelected && each.bound != nil {
			r.schedule(each)
		}
	}
}

func priorityOf(of *subject) int32 {
	if of.bound == nil || of.bound.BindingSpec().SchedulePriority == nil {
		return 0
	}
	return of.bound.BindingSpec().SchedulePriority.Priority
}

// schedule makes the decision of the scheduler about one binding. If no scheduler that is simulated
// handles the binding, only terminating clusters are removed from it.
func (r *run) schedule(of *subject) {
	r.recordTerminating(of)
	if of.waiting == (finding{}) {
		of.waiting = r.whyNotHandled(of.bound)
	}
	if of.waiting != (finding{}) {
		r.removeTerminating(of)
		return
	}
	spec := of.bound.BindingSpec()
	decision, err := placement.Decide(of.bound, spec, of.bound.BindingStatus(), r.cluster, r.Settings.Features)
	if err != nil {
		of.failure = finding{placement.Reason(err), err.Error()}
		r.removeTerminating(of)
		return
	}
	if decision.Action != placement.ActionSchedule {
		return
	}
	of.trigger = decision.Reason
	explanation := placement.Explain(r.placementInput(of))
	if explanation.Err != nil {
		of.failure = finding{placement.Reason(explanation.Err), explanation.Err.Error()}
	}
	for _, exclusion := range explanation.Exclusions {
		if of.leaving[exclusion.Cluster] == "" {
			of.leaving[exclusion.Cluster] = exclusion.Reason
		}
	}
	of.recordGroups(explanation.Result, explanation.Err != nil, r.cluster)
	before := spec.DeepCopy()
	of.edit().BindingSpec().Clusters = explanation.Result.Clusters
	if after := of.bound.BindingSpec(); r.Settings.OvercommitProtection && binding.IsNamespaced(of.bound) && binding.IsWorkload(after) {
		r.assumed.Record(keyOf(of.bound).NamespacedName, before, after, r.Now)
	}
}

// recordGroups records the affinity group in use and the remarks about a scheduling.
func (s *subject) recordGroups(result placement.Result, failed bool, find placement.ClusterLookup) {
	s.affinityGroup = result.AffinityName
	if !failed {
		for _, group := range result.FailedGroups {
			s.remarks = append(s.remarks, fmt.Sprintf("affinity group %s: %s", group.Name, strings.TrimSuffix(group.Err.Error(), ".")))
		}
	}
	unknown := placement.UnknownClusters(s.bound.BindingSpec().Placement, result.AffinityName, failed, find)
	if text := placement.DescribeUnknownClusters(unknown); text != "" {
		s.remarks = append(s.remarks, strings.TrimSuffix(text, "."))
	}
}

// whyNotHandled returns the reason why the simulated scheduler does not handle a binding, or no
// finding.
func (r *run) whyNotHandled(bound binding.Object) finding {
	spec := bound.BindingSpec()
	switch {
	case bound.GetDeletionTimestamp() != nil:
		return finding{ReasonBeingDeleted, "the object is being deleted"}
	case placement.IsHandledBy(bound, spec, r.Settings.SchedulerName):
		return finding{}
	case placement.IsSchedulingSuspended(spec):
		return finding{ReasonSchedulingSuspended, "not scheduled by this scheduler: the scheduling is suspended"}
	case len(spec.RequiredBy) > 0:
		return finding{ReasonAttached, "follows " + describeDependents(spec.RequiredBy)}
	case !placement.IsSchedulable(bound, spec):
		return finding{ReasonNotManaged, "not scheduled by this scheduler: no policy claims the object"}
	default:
		return finding{ReasonOtherScheduler, fmt.Sprintf("not scheduled by this scheduler: schedulerName is %q", placement.SchedulerName(spec))}
	}
}

// maxNamed is the maximum number of names in a message.
const maxNamed = 3

func describeDependents(dependents []workv1alpha2.BindingSnapshot) string {
	var names []string
	for _, each := range dependents[:min(len(dependents), maxNamed)] {
		names = append(names, each.Name)
	}
	if more := len(dependents) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "the objects that refer to it: " + strings.Join(names, ", ")
}

// removeTerminating removes terminating clusters from a binding that is not scheduled.
func (r *run) removeTerminating(of *subject) {
	targets := of.bound.BindingSpec().Clusters
	if remaining := placement.WithoutTerminatingClusters(targets, r.cluster); len(remaining) < len(targets) {
		of.edit().BindingSpec().Clusters = remaining
	}
}

// recordTerminating records the terminating clusters of a binding. This reason for leaving a cluster
// has precedence over those of the scheduler, because it is the cause.
func (r *run) recordTerminating(of *subject) {
	for _, target := range of.bound.BindingSpec().Clusters {
		if cluster := r.cluster(target.Name); cluster != nil && cluster.DeletionTimestamp != nil {
			of.leaving[target.Name] = "being removed"
		}
	}
}

func (r *run) placementInput(of *subject) placement.Input {
	input := placement.NewInput(of.bound, r.Now)
	input.Clusters, input.Features, input.Plugins = r.clusters, r.Settings.Features, r.Settings.Plugins
	input.EstimateReplicas = func(clusters []*clusterv1alpha1.Cluster) []int32 { return r.estimate(of, clusters) }
	if input.Features.WorkloadAffinity {
		input.Peers, _ = placement.PeersOf(of.bound, func(key string) ([]binding.Object, error) { return r.members(of, key), nil }) // never an error
	}
	return input
}

// members returns the bindings of a workload affinity group with their targets in this simulation.
func (r *run) members(of *subject, key string) []binding.Object {
	var members []binding.Object
	for _, each := range r.groups[groupKey{of.bound.GetNamespace(), key}] {
		members = append(members, each.bound)
	}
	return members
}

// estimate returns the capacity of clusters according to their status.
func (r *run) estimate(of *subject, clusters []*clusterv1alpha1.Cluster) []int32 {
	demand := placement.DemandOf(of.bound.BindingSpec(), r.Settings.Features)
	demand.Assumed = map[string][]capacity.AssumedWorkload{}
	available, counts := demand.Counter(r.Settings.Models), make([]int32, len(clusters))
	for i, each := range clusters {
		if assumed := r.assumed.Assumed(each.Name, keyOf(of.bound).NamespacedName, r.Now); len(assumed) > 0 {
			demand.Assumed[each.Name] = assumed
		}
		counts[i] = available(each)
	}
	return counts
}
