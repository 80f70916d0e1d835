// Package placement decides in which clusters a template runs, with how many replicas in each, and
// whether it must be scheduled again.
//
// Decide returns whether a binding has to be scheduled. Schedule runs four steps: filter (which
// clusters are feasible), score (which clusters are preferred), select (which clusters satisfy the
// spread constraints) and assign (how many replicas each cluster gets). With affinity groups,
// Schedule tries one group after the other until one succeeds.
//
// Invariants:
//   - Every function is pure and modifies no argument, so concurrent calls can use the same
//     snapshot of clusters.
//   - Equal arguments give equal results in equal order. Nothing depends on the order of maps.
//   - Divided replicas add up to the number that the template requests. A division by capacity
//     gives no cluster more than its capacity.
//   - Taints, API lists and the capacity of clusters never remove the last target of a workload.
//     Targets become empty only if the user changed the placement and no cluster satisfies it, if
//     clusters are terminating, or if the affinity no longer selects the clusters.
//   - A terminating cluster is never a target of a result, even of a result with an error.
//   - Capacity in other regions and clusters moves no workload: without a new placement or a
//     reschedule request, the regions and clusters that have the workload stay if it fits there.
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
	"karmada.io/karmada/internal/domain/clusteraffinity"
)

// Input holds the arguments of Schedule.
type Input struct {
	// Spec and Status are the spec and the status of the binding. Neither is nil.
	Spec   *workv1alpha2.ResourceBindingSpec
	Status *workv1alpha2.ResourceBindingStatus
	// AppliedPlacement is the value of policyv1alpha1.AppliedPlacementAnnotation.
	AppliedPlacement string
	// Clusters are all known clusters, in any order.
	Clusters []*clusterv1alpha1.Cluster
	// EstimateReplicas returns how much more of the workload (DemandOf) fits into each of the
	// clusters, in the order of the clusters, in sets of components if PlacesComponents returns
	// true, otherwise in replicas. A value that is missing, negative or math.MaxInt32 means that
	// the capacity is unknown. A cluster with unknown capacity counts as having capacity for all
	// replicas. The function is called only if the result depends on it, with the clusters that
	// passed the filters: at most once for each affinity group, or twice if AvoidClusters is set. A
	// nil function means that every capacity is unknown.
	EstimateReplicas func(clusters []*clusterv1alpha1.Cluster) []int32
	Features         Features
	Plugins          Plugins
	// Peers are used only if Features.WorkloadAffinity is true.
	Peers Peers
	// AvoidClusters are the clusters that get the template only if it cannot be placed without
	// them. Present targets stay even if they are in AvoidClusters. If the user requested a
	// placement or a reschedule, AvoidClusters has no effect.
	AvoidClusters sets.Set[string]
	// AvoidStrictly excludes AvoidClusters even if the template cannot be placed without them. It
	// is set if the template already runs in another cluster.
	AvoidStrictly bool
	// Now is the time at which tolerations with a duration are evaluated. If Now is zero, no
	// toleration is over.
	Now time.Time
	// Observer is notified of the steps of the scheduling.
	Observer Observer

	// placementChanged is the result of PlacementChanged. Schedule sets it.
	placementChanged bool
	// exclusions collects the clusters that are left out. Only Explain sets it.
	exclusions map[string]Exclusion
}

// Result is the result of Schedule.
type Result struct {
	// Clusters is the new value of spec.clusters, even if an error is returned. With an error,
	// Clusters holds the previous targets without terminating clusters. It is empty if the error is
	// a FitError with KeepsPrevious=false.
	Clusters []workv1alpha2.TargetCluster
	// AffinityName is the affinity group in use: the group that succeeded or, after an error, the
	// group in the status. It is empty without affinity groups.
	AffinityName string
	// FailedGroups are the groups in which the template could not be placed, in the order of the
	// attempts.
	FailedGroups []GroupFailure
	// ClustersWithoutAPI are the names of the clusters that get no replicas by static weight only
	// because they do not serve the kind; see workv1alpha2.ClustersWithoutAPIAnnotation. They are
	// sorted, and empty after an error.
	ClustersWithoutAPI []string
	// PlacementChanged is true if a user changed the placement since the last scheduling (see
	// PlacementChanged).
	PlacementChanged bool
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
// The error is a *FitError if no cluster passes the filters, an *UnschedulableError if the clusters
// have too little capacity, ErrNoPlacement, or another error if the spread constraints or the
// strategy cannot be satisfied; see Reason. With affinity groups the error is that of the first
// group that was tried.
//
// If no cluster fits although the user requested nothing new since the last scheduling (see
// PlacementChanged), the previous clusters are kept and FitError.KeepsPrevious is true. They are
// kept because taints and API lists of clusters change often, and such a change must not stop all
// replicas of a workload at once. Known clusters that no affinity of the placement selects anymore
// are removed, because the user requested that explicitly. If the placement changed, the targets
// are empty.
//
// A terminating cluster is always removed, whatever error is returned.
func Schedule(input Input) (Result, error) {
	if input.Spec.Placement == nil {
		return Result{Clusters: WithoutTerminatingClusters(input.Spec.Clusters, input.findCluster)}, ErrNoPlacement
	}
	input.placementChanged = PlacementChanged(input.Spec.Placement, input.AppliedPlacement, input.Status.SchedulerObservedAffinityName)
	result, err := scheduleAvoiding(input)
	result.PlacementChanged = input.placementChanged
	return result, err
}

// scheduleAvoiding tries to place the template without AvoidClusters, and then with them.
func scheduleAvoiding(input Input) (Result, error) {
	if len(input.AvoidClusters) > 0 && !input.isMoveRequested() {
		if result, err := newTask(input).schedule(); err == nil || input.AvoidStrictly {
			return result, err
		}
	}
	input.AvoidClusters = nil
	return newTask(input).schedule()
}

// isMoveRequested reports whether a user changed the placement or requested a reschedule. Otherwise
// the regions and clusters that already have the template are preferred.
func (in *Input) isMoveRequested() bool {
	return in.placementChanged || RescheduleRequested(in.Spec, in.Status)
}

func (t *task) schedule() (Result, error) {
	if len(t.spec.Placement.ClusterAffinities) > 0 {
		return t.placeInGroups()
	}
	clusters, err := t.placeInGroup(nil)
	if err != nil {
		return t.failureResult(err), err
	}
	return Result{Clusters: clusters, ClustersWithoutAPI: t.weightedWithoutAPI}, nil
}

// placeInGroups tries the affinity group in use and then, if the template does not fit there, all
// groups in the order of the placement. So a workload does not return to an earlier group while the
// group in use fits, but any group can replace a group that failed.
func (t *task) placeInGroups() (Result, error) {
	groups := t.spec.Placement.ClusterAffinities
	var failed []GroupFailure
	for _, i := range t.groupOrder(groups) {
		clusters, err := t.placeInGroup(&groups[i])
		if err == nil {
			return Result{
				Clusters: clusters, AffinityName: groups[i].AffinityName, FailedGroups: failed, ClustersWithoutAPI: t.weightedWithoutAPI,
			}, nil
		}
		failed = append(failed, GroupFailure{Index: i, Name: groups[i].AffinityName, Err: err})
	}
	err := failed[0].Err
	result := t.failureResult(err)
	result.AffinityName = t.input.Status.SchedulerObservedAffinityName
	result.FailedGroups = failed
	return result, err
}

// groupOrder returns the indexes of the affinity groups in the order in which they are tried. The
// group in use is the first, unless a user requested a reschedule.
func (t *task) groupOrder(groups []policyv1alpha1.ClusterAffinityTerm) []int {
	first := 0
	if !t.rescheduleRequested {
		first = groupIndex(groups, t.input.Status.SchedulerObservedAffinityName)
	}
	order := []int{first}
	for i := range groups {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

// failureResult returns the result for an error. If the error is a FitError, it also sets
// KeepsPrevious in the error.
func (t *task) failureResult(err error) Result {
	remaining := WithoutTerminatingClusters(t.spec.Clusters, t.input.findCluster)
	var fit *FitError
	if !errors.As(err, &fit) {
		return Result{Clusters: remaining}
	}
	fit.KeepsPrevious = !t.input.placementChanged
	if !fit.KeepsPrevious {
		return Result{}
	}
	return Result{Clusters: slices.DeleteFunc(remaining, t.isUnselectedTarget)}
}

// isUnselectedTarget reports whether the target is a known cluster that no affinity of the
// placement selects.
func (t *task) isUnselectedTarget(target workv1alpha2.TargetCluster) bool {
	cluster := t.input.findCluster(target.Name)
	return cluster != nil && t.input.Plugins.Enabled(PluginClusterAffinity) && !clusteraffinity.Selects(t.spec.Placement, cluster)
}

// findCluster returns the known cluster with that name, or nil if there is none.
func (in *Input) findCluster(name string) *clusterv1alpha1.Cluster {
	for _, cluster := range in.Clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	return nil
}

// task holds the input of one scheduling and the values that are computed once for all clusters and
// groups.
type task struct {
	input               Input
	spec                *workv1alpha2.ResourceBindingSpec
	isWorkload          bool
	rescheduleRequested bool // if true, the present shares are ignored

	filters      []filter
	scores       []score
	peerClusters peerClusters
	// assignedReplicas maps the present targets to their replicas. previousTargets lists the names
	// of the present targets in their order in spec.clusters.
	assignedReplicas map[string]int64
	previousTargets  []string

	regionConstraint, clusterConstraint *policyv1alpha1.SpreadConstraint

	// affinityGroup is the affinity group that is being tried, or nil without affinity groups.
	// affinityMatchers are the affinity of that group followed by the affinities of its overflow
	// groups. Without affinity groups, they are the affinity of the placement. A cluster must match
	// one of the affinityMatchers.
	affinityGroup    *policyv1alpha1.ClusterAffinityTerm
	affinityMatchers []clusteraffinity.Matcher
	// rejections are the rejected clusters that the current group selects.
	rejections []Rejection
	// clustersWithoutAPI are the clusters that the current group selects and that do not serve the
	// kind. weightedWithoutAPI are the names of those that have a static weight.
	clustersWithoutAPI []*clusterv1alpha1.Cluster
	weightedWithoutAPI []string
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
	for _, score := range scores() {
		if score.isEnabled(input.Features, input.Plugins) {
			t.scores = append(t.scores, score)
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

// useAffinityGroup selects the affinities of the group, or those of the placement if group is nil.
// Overflow applies only to replicas, so templates without replicas stay in the group.
func (t *task) useAffinityGroup(group *policyv1alpha1.ClusterAffinityTerm) {
	affinity := t.spec.Placement.ClusterAffinity
	if affinity != nil || group == nil {
		t.affinityGroup, t.affinityMatchers = nil, []clusteraffinity.Matcher{clusteraffinity.Compile(affinity)}
		return
	}
	t.affinityGroup = group
	t.affinityMatchers = []clusteraffinity.Matcher{clusteraffinity.Compile(&group.ClusterAffinity)}
	if !t.isWorkload {
		return
	}
	for i := range group.OverflowAffinities {
		t.affinityMatchers = append(t.affinityMatchers, clusteraffinity.Compile(&group.OverflowAffinities[i].ClusterAffinity))
	}
}

// placeInGroup runs all steps for one affinity group. If group is nil, it uses the affinity of the
// placement.
func (t *task) placeInGroup(group *policyv1alpha1.ClusterAffinityTerm) ([]workv1alpha2.TargetCluster, error) {
	t.useAffinityGroup(group)
	clear(t.input.exclusions)
	feasible, err := t.runFilterStep()
	if err != nil {
		return nil, err
	}
	candidates, selected, err := t.runSelectStep(feasible, t.runScoreStep(feasible))
	t.excludeUnselected(candidates, selected, err)
	if err != nil {
		return nil, stepError("failed to select clusters", err)
	}
	targets, err := t.runAssignStep(selected)
	t.excludeUnassigned(selected, targets, err)
	if err != nil {
		return nil, stepError("failed to assign replicas", err)
	}
	t.weightedWithoutAPI = t.namesOfWeighted(selected, t.clustersWithoutAPI)
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

func (t *task) runSelectStep(feasible []*clusterv1alpha1.Cluster, scores []int64) (candidates, selected []candidate, err error) {
	defer t.input.Observer.startStep(StepSelect)()
	candidates = t.rankedCandidates(feasible, scores)
	selected, err = t.selectCandidates(candidates)
	return candidates, selected, err
}

func (t *task) runAssignStep(selected []candidate) ([]workv1alpha2.TargetCluster, error) {
	defer t.input.Observer.startStep(StepAssignReplicas)()
	return t.assignReplicas(selected)
}
