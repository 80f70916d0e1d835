// Package placement answers: in which clusters does a template run, with how many
// replicas in each, and is it time to ask again?
//
// Decide says whether a binding has to be scheduled. Schedule then goes through
// four steps: filter (which clusters may be used), score and order (which are
// preferred), select (which satisfy the spread constraints) and divide (how many
// replicas each gets). With affinity groups it does so for one group after the
// other until one works out.
//
// Invariants:
//   - everything is a pure function of its arguments, and nothing passed in is
//     modified, so one snapshot of clusters serves any number of calls at once;
//   - equal arguments give equal results, in equal order: nothing depends on the
//     order of maps;
//   - divided replicas add up to what the template asks for, and a division by
//     capacity gives no cluster more than it has room for;
//   - taints, API lists and room of clusters never cost a workload its last target:
//     what empties the targets is a placement that the user changed and that nothing
//     satisfies, clusters being removed, and clusters that the affinity no longer
//     selects;
//   - a cluster being removed is never a target of a result, beside an error either.
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

// Input is what Schedule looks at.
type Input struct {
	// Spec and Status are those of the binding. Neither is nil.
	Spec   *workv1alpha2.ResourceBindingSpec
	Status *workv1alpha2.ResourceBindingStatus
	// Applied is the content of policyv1alpha1.AppliedPlacementAnnotation.
	Applied string
	// Clusters are all known ones, in any order.
	Clusters []*clusterv1alpha1.Cluster
	// Estimate tells how many more replicas each of the clusters can take, or
	// how many more sets of components if PlacesComponents. A cluster that is
	// missing, negative or math.MaxInt32 is unknown and counts as able to take
	// all. It is called only when the answer makes a difference, at most once an
	// affinity group, twice with Avoid, with the clusters that passed the filters. Nil knows
	// nothing.
	Estimate func(clusters []*clusterv1alpha1.Cluster) map[string]int32
	Features Features
	Plugins  Plugins
	// Peers matter with Features.WorkloadAffinity only.
	Peers Peers
	// Avoid are clusters that the template goes to only if it cannot be placed without
	// them. It stays where it is, and what the user asks for anew counts more.
	Avoid sets.Set[string]
	// AvoidOnly keeps the template out of the clusters to avoid even if it cannot be
	// placed without them: it has a copy left elsewhere.
	AvoidOnly bool
	// Now tells which tolerations for a time are over. At the zero time none is.
	Now time.Time
	// Observer is told of the steps.
	Observer Observer
}

// Result is what Schedule found.
type Result struct {
	// Clusters is what spec.clusters is to hold, beside an error, too: the
	// previous targets without those being removed, or none if the error is a
	// FitError that does not keep them.
	Clusters []workv1alpha2.TargetCluster
	// AffinityName is the affinity group in use: the one that worked out, or
	// after an error the one in the status. Empty without affinity groups.
	AffinityName string
	// Failed are the groups that did not work out, in the order of trying.
	Failed []GroupFailure
}

// GroupFailure is an affinity group that could not take the template.
type GroupFailure struct {
	// Index is the place of the group in placement.clusterAffinities.
	Index int
	Name  string
	Err   error
}

// Schedule chooses the clusters of a binding and divides its replicas over them.
//
// The error is a *FitError if no cluster passes the filters, an
// *UnschedulableError if the clusters have too little room, ErrNoPlacement, or any
// other if the spread constraints or the strategy cannot be met; see Reason. With
// affinity groups it is the error of the first group tried.
//
// When no cluster fits although the user asked for nothing new since the last
// scheduling (see PlacementChanged), the previous clusters are kept, and
// FitError.KeepsPrevious says so: taints and API lists of clusters come and go, and
// losing all of them must not stop every replica of a workload at once. Clusters that
// are known and that no affinity of the placement selects any longer are left: that
// wish is explicit. When the placement changed, the targets are empty.
//
// A cluster being removed is left in any case, whatever error is returned.
func Schedule(input Input) (Result, error) {
	if input.Spec.Placement == nil {
		return Result{Clusters: WithoutLeaving(input.Spec.Clusters, input.find)}, ErrNoPlacement
	}
	asked := RescheduleRequested(input.Spec, input.Status) ||
		PlacementChanged(input.Spec.Placement, input.Applied, input.Status.SchedulerObservedAffinityName)
	if len(input.Avoid) > 0 && !asked {
		if result, err := newTask(input).schedule(); err == nil || input.AvoidOnly {
			return result, err
		}
	}
	input.Avoid = nil
	return newTask(input).schedule()
}

func (t *task) schedule() (Result, error) {
	if len(t.spec.Placement.ClusterAffinities) > 0 {
		return t.placeInGroups()
	}
	clusters, err := t.place(nil)
	if err != nil {
		return t.failure(err), err
	}
	return Result{Clusters: clusters}, nil
}

// placeInGroups tries the affinity groups from the one in use on. Earlier ones
// get another chance only on request, so that a workload does not swing back by
// itself.
func (t *task) placeInGroups() (Result, error) {
	groups := t.spec.Placement.ClusterAffinities
	first := 0
	if !t.fresh {
		first = groupIndex(groups, t.input.Status.SchedulerObservedAffinityName)
	}
	var failed []GroupFailure
	for i := first; i < len(groups); i++ {
		clusters, err := t.place(&groups[i])
		if err == nil {
			return Result{Clusters: clusters, AffinityName: groups[i].AffinityName, Failed: failed}, nil
		}
		failed = append(failed, GroupFailure{Index: i, Name: groups[i].AffinityName, Err: err})
	}
	err := failed[0].Err
	result := t.failure(err)
	result.AffinityName = t.input.Status.SchedulerObservedAffinityName
	result.Failed = failed
	return result, err
}

// failure is the result beside an error. It also tells a FitError whether the
// previous targets are kept.
func (t *task) failure(err error) Result {
	staying := WithoutLeaving(t.spec.Clusters, t.input.find)
	var fit *FitError
	if !errors.As(err, &fit) {
		return Result{Clusters: staying}
	}
	observed := t.input.Status.SchedulerObservedAffinityName
	fit.KeepsPrevious = !PlacementChanged(t.spec.Placement, t.input.Applied, observed)
	if !fit.KeepsPrevious {
		return Result{}
	}
	return Result{Clusters: slices.DeleteFunc(staying, t.unselected)}
}

// unselected reports whether the target is a known cluster that no affinity of the
// placement selects.
func (t *task) unselected(target workv1alpha2.TargetCluster) bool {
	cluster := t.input.find(target.Name)
	return cluster != nil && t.input.Plugins.Enabled(PluginClusterAffinity) && !Selects(t.spec.Placement, cluster)
}

// find returns the known cluster of that name; nil if there is none.
func (in *Input) find(name string) *clusterv1alpha1.Cluster {
	for _, cluster := range in.Clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	return nil
}

// task is one scheduling: the input, and what is worked out once for all clusters
// and groups.
type task struct {
	input    Input
	spec     *workv1alpha2.ResourceBindingSpec
	workload bool
	fresh    bool // divide anew instead of adding to what is there

	filters    []filter
	neighbours neighbours
	// assigned are the replicas of the present targets; previous is their order.
	assigned map[string]int64
	previous []string

	region, cluster *policyv1alpha1.SpreadConstraint

	// group is the affinity group being tried; nil for none. affinities are its own
	// and behind it those of its overflow groups, or else that of the placement. A
	// cluster has to match one of them.
	group      *policyv1alpha1.ClusterAffinityTerm
	affinities []Matcher
	// rejected are the clusters that the group being tried selects and that are no
	// candidates.
	rejected []Rejection
}

func newTask(input Input) *task {
	spec := input.Spec
	t := &task{
		input:      input,
		spec:       spec,
		workload:   binding.IsWorkload(spec),
		fresh:      RescheduleRequested(spec, input.Status),
		neighbours: neighboursOf(input.Peers),
		assigned:   make(map[string]int64, len(spec.Clusters)),
		region:     constraint(spec.Placement, policyv1alpha1.SpreadByFieldRegion),
		cluster:    constraint(spec.Placement, policyv1alpha1.SpreadByFieldCluster),
	}
	for _, filter := range filters() {
		if filter.enabled(input.Features, input.Plugins) {
			t.filters = append(t.filters, filter)
		}
	}
	for _, target := range spec.Clusters {
		if !t.targets(target.Name) {
			t.previous = append(t.previous, target.Name)
		}
		t.assigned[target.Name] += int64(max(target.Replicas, 0))
	}
	return t
}

// targets reports whether the template is in that cluster already.
func (t *task) targets(name string) bool {
	_, ok := t.assigned[name]
	return ok
}

// enter makes the affinities of the group, nil for none, those that count.
// Overflow is for replicas, so templates without replicas stay in the group.
func (t *task) enter(group *policyv1alpha1.ClusterAffinityTerm) {
	affinity := t.spec.Placement.ClusterAffinity
	if affinity != nil || group == nil {
		t.group, t.affinities = nil, []Matcher{Compile(affinity)}
		return
	}
	t.group = group
	t.affinities = []Matcher{Compile(&group.ClusterAffinity)}
	if !t.workload {
		return
	}
	for i := range group.OverflowAffinities {
		t.affinities = append(t.affinities, Compile(&group.OverflowAffinities[i].ClusterAffinity))
	}
}

// place goes through all steps for one affinity group, nil for none.
func (t *task) place(group *policyv1alpha1.ClusterAffinityTerm) ([]workv1alpha2.TargetCluster, error) {
	t.enter(group)
	feasible, err := t.filter()
	if err != nil {
		return nil, err
	}
	selected, err := t.choose(feasible, t.score(feasible))
	if err != nil {
		return nil, stepError("failed to select clusters", err)
	}
	targets, err := t.divide(selected)
	if err != nil {
		return nil, stepError("failed to assign replicas", err)
	}
	return targets, nil
}

func (t *task) filter() ([]*clusterv1alpha1.Cluster, error) {
	defer t.input.Observer.step(StepFilter)()
	return t.feasible()
}

func (t *task) score(feasible []*clusterv1alpha1.Cluster) []int64 {
	defer t.input.Observer.step(StepScore)()
	return t.scores(feasible)
}

func (t *task) choose(feasible []*clusterv1alpha1.Cluster, scores []int64) ([]candidate, error) {
	defer t.input.Observer.step(StepSelect)()
	return t.selected(t.candidates(feasible, scores))
}

func (t *task) divide(selected []candidate) ([]workv1alpha2.TargetCluster, error) {
	defer t.input.Observer.step(StepAssignReplicas)()
	return t.assign(selected)
}
