package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/diagnose"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/placement"
)

// evict evicts a workload from the clusters whose NoExecute taints it does not tolerate. It also evicts a
// workload that tolerates a taint only for some time, because the result is the final state.
func (s *simulator) evict(of *subject) {
	if of.bound == nil || of.bound.GetDeletionTimestamp() != nil {
		return
	}
	for _, target := range slices.Clone(of.bound.BindingSpec().Clusters) {
		cluster := s.cluster(target.Name)
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
		of.leaving[target.Name] = describeEviction(eviction, deadline.Until.Sub(s.Now))
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
func (s *simulator) scheduleAll() {
	queue := slices.Clone(s.sorted)
	slices.SortStableFunc(queue, func(a, b *subject) int { return cmp.Compare(priorityOf(b), priorityOf(a)) })
	for _, each := range queue {
		if each.isSelected && each.bound != nil {
			s.schedule(each)
		}
	}
}

func priorityOf(of *subject) int32 {
	if of.bound == nil || of.bound.BindingSpec().SchedulePriority == nil {
		return 0
	}
	return of.bound.BindingSpec().SchedulePriority.Priority
}

// schedule makes the scheduler's decision about one binding. If the simulated scheduler does not handle the
// binding, schedule only removes terminating clusters from it.
func (s *simulator) schedule(of *subject) {
	s.recordTerminating(of)
	if of.waiting == (finding{}) {
		of.waiting = s.explainNotHandled(of.bound)
	}
	if of.waiting != (finding{}) {
		s.removeTerminating(of)
		return
	}
	spec := of.bound.BindingSpec()
	decision, err := placement.Decide(of.bound, spec, of.bound.BindingStatus(), s.cluster, s.Settings.Features)
	if err != nil {
		of.failure = finding{placement.Reason(err), err.Error()}
		s.removeTerminating(of)
		return
	}
	if decision.Action != placement.ActionSchedule {
		return
	}
	of.trigger = decision.Reason
	explanation := placement.Explain(s.placementInput(of))
	if explanation.Err != nil {
		of.failure = finding{placement.Reason(explanation.Err), explanation.Err.Error()}
	}
	for _, exclusion := range explanation.Exclusions {
		if of.leaving[exclusion.Cluster] == "" {
			of.leaving[exclusion.Cluster] = exclusion.Reason
		}
	}
	of.recordGroups(explanation.Result, explanation.Err != nil, s.cluster)
	before := spec.DeepCopy()
	of.edit().BindingSpec().Clusters = explanation.Result.Clusters
	if after := of.bound.BindingSpec(); s.Settings.OvercommitProtection && binding.IsNamespaced(of.bound) && binding.IsWorkload(after) {
		s.assumed.Record(keyOf(of.bound).NamespacedName, before, after, s.Now)
	}
}

// recordGroups records the affinity group in use, the groups that do not fit, and unknown clusters.
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

// explainNotHandled returns the reason why the simulated scheduler does not handle a binding. It returns no
// finding if the scheduler handles it.
func (s *simulator) explainNotHandled(bound binding.Object) finding {
	spec := bound.BindingSpec()
	if bound.GetDeletionTimestamp() != nil {
		return finding{diagnose.ReasonTerminating, "the object is being deleted"}
	}
	if placement.IsHandledBy(bound, spec, s.Settings.SchedulerName) {
		return finding{}
	}
	switch reason := diagnose.UnscheduledReason(bound); {
	case reason == diagnose.ReasonSchedulingSuspended:
		return finding{reason, "not scheduled by this scheduler: the scheduling is suspended"}
	case len(spec.RequiredBy) > 0:
		return finding{diagnose.ReasonAttached, "follows the objects that refer to it: " + diagnose.DescribeDependents(spec.RequiredBy)}
	case reason != "":
		return finding{reason, "not scheduled by this scheduler: no policy claims the object"}
	default:
		return finding{ReasonOtherScheduler, fmt.Sprintf("not scheduled by this scheduler: schedulerName is %q", placement.SchedulerName(spec))}
	}
}

// removeTerminating removes terminating clusters from a binding that is not scheduled.
func (s *simulator) removeTerminating(of *subject) {
	targets := of.bound.BindingSpec().Clusters
	if remaining := placement.WithoutTerminatingClusters(targets, s.cluster); len(remaining) < len(targets) {
		of.edit().BindingSpec().Clusters = remaining
	}
}

// recordTerminating records that the object leaves terminating clusters. This reason has precedence over those
// of the scheduler, because it is the cause.
func (s *simulator) recordTerminating(of *subject) {
	for _, target := range of.bound.BindingSpec().Clusters {
		if cluster := s.cluster(target.Name); cluster != nil && cluster.DeletionTimestamp != nil {
			of.leaving[target.Name] = "being removed"
		}
	}
}

func (s *simulator) placementInput(of *subject) placement.Input {
	input := placement.NewInput(of.bound, s.Now)
	input.Clusters, input.Features, input.Plugins = s.clusters, s.Settings.Features, s.Settings.Plugins
	input.EstimateReplicas = func(clusters []*clusterv1alpha1.Cluster) []int32 { return s.estimate(of, clusters) }
	if input.Features.WorkloadAffinity {
		input.Peers, _ = placement.PeersOf(of.bound,
			func(key string) ([]binding.Object, error) { return s.groupMembers(of, key), nil }) // never an error
	}
	return input
}

// groupMembers returns the bindings in a workload affinity group of the subject, with their targets in this
// simulation.
func (s *simulator) groupMembers(of *subject, key string) []binding.Object {
	var members []binding.Object
	for _, each := range s.groups[groupKey{of.bound.GetNamespace(), key}] {
		members = append(members, each.bound)
	}
	return members
}

// estimate returns the capacity of each cluster according to its status, minus the workloads that this
// simulation has placed there.
func (s *simulator) estimate(of *subject, clusters []*clusterv1alpha1.Cluster) []int32 {
	demand := placement.DemandOf(of.bound.BindingSpec(), s.Settings.Features)
	demand.Assumed = map[string][]capacity.AssumedWorkload{}
	available, counts := demand.Counter(s.Settings.Models), make([]int32, len(clusters))
	for i, each := range clusters {
		if assumed := s.assumed.Assumed(each.Name, keyOf(of.bound).NamespacedName, s.Now); len(assumed) > 0 {
			demand.Assumed[each.Name] = assumed
		}
		counts[i] = available(each)
	}
	return counts
}
