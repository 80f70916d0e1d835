// Package placement answers: in which clusters does a template run, with how many replicas in
// each, and does it have to be scheduled again?
//
// Decide reports whether a binding has to be scheduled. Schedule then runs four steps: filter
// (which clusters are feasible), score (which clusters are preferred), select (which clusters
// satisfy the spread constraints) and assign (how many replicas each cluster gets). With
// affinity groups it tries one group after the other until one succeeds.
//
// Invariants:
//   - Every function is pure and modifies no argument, so one snapshot of clusters serves any
//     number of concurrent calls.
//   - Equal arguments give equal results in equal order. Nothing depends on the order of maps.
//   - Divided replicas add up to the number that the template requests. A division by capacity
//     gives no cluster more than its capacity.
//   - Taints, API lists and the capacity of clusters never remove the last target of a workload.
//     Targets become empty only if the user changed the placement and no cluster satisfies it,
//     if clusters are terminating, or if the affinity does not select the clusters any more.
//   - A terminating cluster is never a target of a result, even of a result with an error.
package placement

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// Input holds the arguments of Schedule.
type Input struct {
	// Spec and Status belong to the binding. Neither is nil.
	Spec   *workv1alpha2.ResourceBindingSpec
	Status *workv1alpha2.ResourceBindingStatus
	// AppliedPlacement is the content of policyv1alpha1.AppliedPlacementAnnotation.
	AppliedPlacement string
	// Clusters are all known clusters, in any order.
	Clusters []*clusterv1alpha1.Cluster
	// EstimateReplicas returns how many more replicas each of the clusters can take, or how many
	// more sets of components if PlacesComponents. A cluster that is missing, negative or
	// math.MaxInt32 is unknown and counts as having capacity for all replicas. The function is
	// called only if the result depends on it, with the clusters that passed the filters: at
	// most once for each affinity group, or twice with AvoidClusters. Nil means that every
	// capacity is unknown.
	EstimateReplicas func(clusters []*clusterv1alpha1.Cluster) map[string]int32
	Features         Features
	Plugins          Plugins
	// Peers are used only with Features.WorkloadAffinity.
	Peers Peers
	// AvoidClusters are used only if the template cannot be placed without them. Present targets
	// stay, and a placement or a reschedule that the user requested takes precedence.
	AvoidClusters sets.Set[string]
	// AvoidStrictly excludes AvoidClusters even if the template cannot be placed without them,
	// because it has a copy elsewhere.
	AvoidStrictly bool
	// Now is the time at which tolerations with a duration are evaluated. At the zero time no
	// toleration is over.
	Now time.Time
	// Observer is notified of the steps.
	Observer Observer
}

// Result is the result of Schedule.
type Result struct {
	// Clusters is the new value of spec.clusters, also if an error is returned: then it holds
	// the previous targets without terminating clusters, or none if the error is a FitError that
	// does not keep them.
	Clusters []workv1alpha2.TargetCluster
	// AffinityName is the affinity group in use: the group that succeeded, or the one in the
	// status after an error. It is empty without affinity groups.
	AffinityName string
	// FailedGroups are the groups that failed, in the order of the attempts.
	FailedGroups []GroupFailure
}

// GroupFailure is an affinity group in which the template could not be placed.
type GroupFailure struct {
	// Index is the index of the group in placement.clusterAffinities.
	Index int
	Name  string
	Err   error
}

// Schedule chooses the clusters of a binding and divides its replicas over them.
//
// The error is a *FitError if no cluster passes the filters, an *UnschedulableError if the
// clusters have too little capacity, ErrNoPlacement, or another error if the spread constraints
// or the strategy cannot be satisfied; see Reason. With affinity groups it is the error of the
// first group that was tried.
//
// If no cluster fits although the user requested nothing new since the last scheduling (see
// PlacementChanged), the previous clusters are kept and FitError.KeepsPrevious is true: taints
// and API lists of clusters change often, and their loss must not stop all replicas of a
// workload at once. Known clusters that no affinity of the placement selects any more are
// removed, because the user requested that explicitly. If the placement changed, the targets are
// empty.
//
// A terminating cluster is always removed, whatever error is returned.
func Schedule(input Input) (Result, error) {
	if input.Spec.Placement == nil {
		return Result{Clusters: WithoutTerminatingClusters(input.Spec.Clusters, input.findCluster)}, ErrNoPlacement
	}
	placementRequested := RescheduleRequested(input.Spec, input.Status) ||
		PlacementChanged(input.Spec.Placement, input.AppliedPlacement, input.Status.SchedulerObservedAffinityName)
	if len(input.AvoidClusters) > 0 && !placementRequested {
		if result, err := newTask(input).schedule(); err == nil || input.AvoidStrictly {
			return result, err
		}
	}
	input.AvoidClusters = nil
	return newTask(input).schedule()
}

func (t *task) schedule() (Result, error) {
	if len(t.spec.Placement.ClusterAffinities) > 0 {
		return t.placeInGroups()
	}
	clusters, err := t.placeInGroup(nil)
	if err != nil {
		return t.failureResult(err), err
	}
	return Result{Clusters: clusters}, nil
}

// placeInGroups tries the affinity groups, beginning with the group in use. It tries earlier
// groups only after a reschedule request, so that a workload does not move back by itself.
func (t *task) placeInGroups() (Result, error) {
	groups := t.spec.Placement.ClusterAffinities
	first := 0
	if !t.rescheduleRequested {
		first = groupIndex(groups, t.input.Status.SchedulerObservedAffinityName)
	}
	var failed []GroupFailure
	for i := first; i < len(groups); i++ {
		clusters, err := t.placeInGroup(&groups[i])
		if err == nil {
			return Result{Clusters: clusters, AffinityName: groups[i].AffinityName, FailedGroups: failed}, nil
		}
		failed = append(failed, GroupFailure{Index: i, Name: groups[i].AffinityName, Err: err})
	}
	err := failed[0].Err
	result := t.failureResult(err)
	result.AffinityName = t.input.Status.SchedulerObservedAffinityName
	result.FailedGroups = failed
	return result, err
}

// failureResult returns the result for an error. It also sets FitError.KeepsPrevious.
func (t *task) failureResult(err error) Result {
	remaining := WithoutTerminatingClusters(t.spec.Clusters, t.input.findCluster)
	var fit *FitError
	if !errors.As(err, &fit) {
		return Result{Clusters: remaining}
	}
	observed := t.input.Status.SchedulerObservedAffinityName
	fit.KeepsPrevious = !PlacementChanged(t.spec.Placement, t.input.AppliedPlacement, observed)
	if !fit.KeepsPrevious {
		return Result{}
	}
	return Result{Clusters: slices.DeleteFunc(remaining, t.isUnselectedTarget)}
}

// isUnselectedTarget reports whether the target is a known cluster that no affinity of the
// placement selects.
func (t *task) isUnselectedTarget(target workv1alpha2.TargetCluster) bool {
	cluster := t.input.findCluster(target.Name)
	return cluster != nil && t.input.Plugins.Enabled(PluginClusterAffinity) && !Selects(t.spec.Placement, cluster)
}

// findCluster returns the known cluster with that name, or nil.
func (in *Input) findCluster(name string) *clusterv1alpha1.Cluster {
	for _, cluster := range in.Clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	return nil
}

// task is one scheduling: the input and the values that are computed once for all clusters and
// groups.
type task struct {
	input               Input
	spec                *workv1alpha2.ResourceBindingSpec
	isWorkload          bool
	rescheduleRequested bool // ignore the present shares

	filters      []filter
	peerClusters peerClusters
	// assignedReplicas holds the replicas of the present targets, previousTargets their order.
	assignedReplicas map[string]int64
	previousTargets  []string

	regionConstraint, clusterConstraint *policyv1alpha1.SpreadConstraint

	// affinityGroup is the affinity group that is being tried, or nil. affinityMatchers are the
	// affinity of that group followed by those of its overflow groups, or the affinity of the
	// placement. A cluster has to match one of them.
	affinityGroup    *policyv1alpha1.ClusterAffinityTerm
	affinityMatchers []Matcher
	// rejections are the clusters that the current group selects and that were rejected.
	rejections []Rejection
}

func newTask(input Input) *task {
	spec := input.Spec
	t := &task{
		input:               input,
		spec:                spec,
		isWorkload:          binding.IsWorkload(spec),
		rescheduleRequested: RescheduleRequested(spec, input.Status),
		peerClusters:        peerClustersOf(input.Peers),
		assignedReplicas:    make(map[string]int64, len(spec.Clusters)),
		regionConstraint:    spreadConstraint(spec.Placement, policyv1alpha1.SpreadByFieldRegion),
		clusterConstraint:   spreadConstraint(spec.Placement, policyv1alpha1.SpreadByFieldCluster),
	}
	for _, filter := range filters() {
		if filter.isEnabled(input.Features, input.Plugins) {
			t.filters = append(t.filters, filter)
		}
	}
	for _, target := range spec.Clusters {
		if !t.isTarget(target.Name) {
			t.previousTargets = append(t.previousTargets, target.Name)
		}
		t.assignedReplicas[target.Name] += int64(max(target.Replicas, 0))
	}
	return t
}

// isTarget reports whether the cluster is already a target of the template.
func (t *task) isTarget(name string) bool {
	_, ok := t.assignedReplicas[name]
	return ok
}

// useAffinityGroup selects the affinities of the group, or of the placement if group is nil.
// Overflow applies to replicas only, so templates without replicas stay in the group.
func (t *task) useAffinityGroup(group *policyv1alpha1.ClusterAffinityTerm) {
	affinity := t.spec.Placement.ClusterAffinity
	if affinity != nil || group == nil {
		t.affinityGroup, t.affinityMatchers = nil, []Matcher{Compile(affinity)}
		return
	}
	t.affinityGroup = group
	t.affinityMatchers = []Matcher{Compile(&group.ClusterAffinity)}
	if !t.isWorkload {
		return
	}
	for i := range group.OverflowAffinities {
		t.affinityMatchers = append(t.affinityMatchers, Compile(&group.OverflowAffinities[i].ClusterAffinity))
	}
}

// placeInGroup runs all steps for one affinity group, or for the placement if group is nil.
func (t *task) placeInGroup(group *policyv1alpha1.ClusterAffinityTerm) ([]workv1alpha2.TargetCluster, error) {
	t.useAffinityGroup(group)
	feasible, err := t.runFilterStep()
	if err != nil {
		return nil, err
	}
	selected, err := t.runSelectStep(feasible, t.runScoreStep(feasible))
	if err != nil {
		return nil, stepError("failed to select clusters", err)
	}
	targets, err := t.runAssignStep(selected)
	if err != nil {
		return nil, stepError("failed to assign replicas", err)
	}
	return targets, nil
}

func (t *task) runFilterStep() ([]*clusterv1alpha1.Cluster, error) {
	defer t.input.Observer.startStep(StepFilter)()
	return t.feasibleClusters()
}

func (t *task) runScoreStep(feasible []*clusterv1alpha1.Cluster) []int64 {
	defer t.input.Observer.startStep(StepScore)()
	return t.clusterScores(feasible)
}

func (t *task) runSelectStep(feasible []*clusterv1alpha1.Cluster, scores []int64) ([]candidate, error) {
	defer t.input.Observer.startStep(StepSelect)()
	return t.selectCandidates(t.rankedCandidates(feasible, scores))
}

func (t *task) runAssignStep(selected []candidate) ([]workv1alpha2.TargetCluster, error) {
	defer t.input.Observer.startStep(StepAssignReplicas)()
	return t.assignReplicas(selected)
}
