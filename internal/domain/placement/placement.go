// Package placement selects the clusters in which a template runs, divides its replicas among them,
// and decides when a binding must be scheduled again.
//
// Decide returns whether a binding must be scheduled. Schedule runs four steps: filter excludes
// clusters, score ranks the remaining ones, select applies the spread constraints, and assign divides
// the replicas. With affinity groups, Schedule tries one group after the other until one succeeds.
//
// Invariants:
//   - Every function is pure and does not modify its arguments, so concurrent calls can share a
//     snapshot of clusters.
//   - Equal arguments give equal results in the same order, regardless of map iteration order.
//   - Divided replicas add up to the number that the template requests. A division by capacity never
//     exceeds a cluster's capacity.
//   - Changed taints, API lists or capacities never remove a workload's last target. The targets become
//     empty only if a user changed the placement and no cluster satisfies it, if the clusters are
//     terminating, or if the affinity no longer selects them.
//   - The result never contains a terminating cluster, even if an error is returned.
//   - A workload does not move because other regions or clusters have more capacity. Without a changed
//     placement or a reschedule request, it keeps its regions and clusters as long as it fits there.
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
	// Spec and Status are the binding's spec and status. Neither may be nil.
	Spec   *workv1alpha2.ResourceBindingSpec
	Status *workv1alpha2.ResourceBindingStatus
	// AppliedPlacement is the value of policyv1alpha1.AppliedPlacementAnnotation.
	AppliedPlacement string
	// Clusters are all clusters, in any order.
	Clusters []*clusterv1alpha1.Cluster
	// EstimateReplicas returns each cluster's capacity for the demand (see DemandOf), in the order of
	// clusters: the number of additional sets of components if PlacesComponents returns true, or else
	// of additional replicas. A value that is missing, negative or math.MaxInt32 means that the
	// capacity is unknown. A cluster with unknown capacity counts as having room for all replicas.
	//
	// The function is called only if the result depends on capacity, with the clusters that passed the
	// filters: at most once for each affinity group, or twice if AvoidClusters is set. If it is nil,
	// every capacity is unknown.
	EstimateReplicas func(clusters []*clusterv1alpha1.Cluster) []int32
	Features         Features
	Plugins          Plugins
	// Peers are used only if Features.WorkloadAffinity is true.
	Peers Peers
	// AvoidClusters are clusters that are selected only if the template cannot be placed without them.
	// Current targets stay even if they are listed. The field has no effect if a user changed the
	// placement or requested a reschedule.
	AvoidClusters sets.Set[string]
	// AvoidStrictly excludes AvoidClusters even if the template cannot be placed without them. It is
	// set if the template already runs in another cluster.
	AvoidStrictly bool
	// Now is the time at which tolerations with a duration are evaluated. If it is zero, no toleration
	// has expired.
	Now time.Time
	// Observer is notified of the scheduling steps.
	Observer Observer

	// placementChanged is the result of PlacementChanged. It is set by Schedule.
	placementChanged bool
	// exclusions collects the excluded clusters. It is non-nil only during Explain.
	exclusions map[string]Exclusion
}

// Result is the result of Schedule.
type Result struct {
	// Clusters is the new value of spec.clusters, also if an error is returned. In case of an error, it
	// contains the previous targets without terminating clusters, or nothing if the error is a FitError
	// with KeepsPrevious=false.
	Clusters []workv1alpha2.TargetCluster
	// AffinityName is the affinity group in use: the group that succeeded or, after an error, the group
	// in the status. It is empty without affinity groups.
	AffinityName string
	// FailedGroups are the affinity groups that failed, in the order in which they were tried.
	FailedGroups []GroupFailure
	// ClustersWithoutAPI lists the clusters with a static weight that get no replicas only because they
	// do not serve the kind (see workv1alpha2.ClustersWithoutAPIAnnotation). The list is sorted, and
	// empty after an error.
	ClustersWithoutAPI []string
	// PlacementChanged is true if a user changed the placement since the last scheduling. See the
	// function PlacementChanged.
	PlacementChanged bool
}

// GroupFailure is the error of an affinity group in which the template could not be placed.
type GroupFailure struct {
	// Index is the group's index in placement.clusterAffinities.
	Index int
	Name  string
	Err   error
}

// Schedule selects a binding's clusters and divides its replicas among them.
//
// The returned error is a *FitError if no cluster passes the filters, an *UnschedulableError if the
// clusters lack capacity, ErrNoPlacement, or another error if the spread constraints or the strategy
// cannot be satisfied (see Reason). With affinity groups, it is the error of the group that was tried
// first.
//
// If no cluster fits, the result depends on whether the placement has changed since the last
// scheduling (see PlacementChanged). If it has not, the previous targets are kept and
// FitError.KeepsPrevious is true, because clusters' taints and API lists change often and must not
// stop all replicas of a workload. Only clusters that no affinity selects anymore are removed. If the
// placement has changed, the targets become empty.
//
// Terminating clusters are always removed, regardless of the error.
func Schedule(input Input) (Result, error) {
	if input.Spec.Placement == nil {
		return Result{Clusters: WithoutTerminatingClusters(input.Spec.Clusters, input.findCluster)}, ErrNoPlacement
	}
	input.placementChanged = PlacementChanged(input.Spec.Placement, input.AppliedPlacement, input.Status.SchedulerObservedAffinityName)
	result, err := scheduleAvoiding(input)
	result.PlacementChanged = input.placementChanged
	return result, err
}

// scheduleAvoiding tries to place the template without AvoidClusters first, and then with them.
func scheduleAvoiding(input Input) (Result, error) {
	if len(input.AvoidClusters) > 0 && !input.isMoveRequested() {
		if result, err := newTask(input).schedule(); err == nil || input.AvoidStrictly {
			return result, err
		}
	}
	input.AvoidClusters = nil
	return newTask(input).schedule()
}

// isMoveRequested reports whether a user changed the placement or requested a reschedule. If not, the
// regions and clusters that already have the template are preferred.
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

// placeInGroups tries the affinity group in use first, and then the other groups in the order of the
// placement. A workload therefore does not return to an earlier group while the group in use fits, but
// any group can replace a group that failed.
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
// group in use comes first, unless a user requested a reschedule.
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

// failureResult returns the result to return together with err. If err is a *FitError, it also sets
// its field KeepsPrevious.
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

// isUnselectedTarget reports whether the target cluster exists, but no affinity of the placement
// selects it.
func (t *task) isUnselectedTarget(target workv1alpha2.TargetCluster) bool {
	cluster := t.input.findCluster(target.Name)
	return cluster != nil && t.input.Plugins.Enabled(PluginClusterAffinity) && !clusteraffinity.Selects(t.spec.Placement, cluster)
}

// findCluster returns the cluster with the given name, or nil if it is not found.
func (in *Input) findCluster(name string) *clusterv1alpha1.Cluster {
	for _, cluster := range in.Clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	return nil
}

// task holds the input of a Schedule call, and values that are computed once for all clusters and
// affinity groups.
type task struct {
	input               Input
	spec                *workv1alpha2.ResourceBindingSpec
	isWorkload          bool
	rescheduleRequested bool // if true, the current shares are ignored

	filters      []filter
	scores       []score
	peerClusters peerClusters
	// assignedReplicas holds the replicas of the current targets by cluster name. previousTargets lists
	// the names of the current targets in the order of spec.clusters.
	assignedReplicas map[string]int64
	previousTargets  []string

	regionConstraint, clusterConstraint *policyv1alpha1.SpreadConstraint

	// affinityGroup is the affinity group that is being tried, or nil without affinity groups.
	affinityGroup *policyv1alpha1.ClusterAffinityTerm
	// affinityMatchers match the group's affinity, followed by those of its overflow groups, or the
	// placement's affinity if there are no groups. A feasible cluster matches at least one of them.
	affinityMatchers []clusteraffinity.Matcher
	// rejections are the clusters that the group selects but that a filter rejected.
	rejections []Rejection
	// clustersWithoutAPI are the clusters that the group selects but that do not serve the kind.
	// weightedWithoutAPI are the names of those with a static weight.
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

// useAffinityGroup sets the affinity matchers for the group, or for the placement's affinity if group
// is nil. Templates without replicas do not use overflow groups, because overflow applies to replicas.
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

// placeInGroup runs all steps for the affinity group, or for the placement's affinity if group is nil.
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
