// Package simulation computes to which clusters objects would go, and which copies would leave their
// clusters, if clusters, policies or templates were different.
//
// Run walks the pipeline that package diagnose describes, from the template to the schedule, with planned
// objects: it applies the changes to the objects of a control plane, and makes the decisions of the detector,
// the taint manager, the scheduler and the dependencies controller with the functions that these components
// call. The stages after the schedule do not change clusters, so Run leaves them out. Package diagnose only
// reads what the components have reported about one template; Run decides about all bindings together,
// because they compete for capacity. So the two packages share the stages' decisions, reasons and targets, but no
// loop over the stages.
//
// Invariants:
//   - Run is pure and modifies no argument. Equal arguments give equal results in equal order.
//   - Without a change, a binding that the scheduler has finished keeps its clusters and replicas.
//   - The result is the state after the scheduler has processed each binding once. Capacity is that of
//     the status of the clusters. Quotas, overrides and other estimators are not considered.
package simulation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/policy"
)

// Input holds the arguments of Run.
type Input struct {
	// Clusters, Policies and Bindings are all objects of these kinds in the control plane.
	Clusters []*clusterv1alpha1.Cluster
	Policies []policy.Object
	Bindings []binding.Object
	// Templates are stored templates: those with the kind of a given template, and those that a given
	// policy selects or claims. Others are ignored.
	Templates []*unstructured.Unstructured

	// GivenPolicies and GivenTemplates replace the stored objects of the same name, or are added.
	// PreparePolicy returns a policy in the form in which it would be stored.
	GivenPolicies  []policy.Object
	GivenTemplates []*unstructured.Unstructured
	Changes        ClusterChanges
	// All selects all bindings. Otherwise, the bindings of given templates, the bindings that given
	// policies claim, claimed or would claim, and the bindings that are attached to these are selected.
	All bool

	Settings Settings
	// Rules interpret templates.
	Rules interpreter.Source
	Now   time.Time
}

// Settings are the settings of the control plane's components. They cannot be read from objects.
type Settings struct {
	// SchedulerName is the name of the scheduler that is simulated.
	SchedulerName string
	Features      placement.Features
	// Plugins are the plugins of the scheduler. An empty list selects all plugins.
	Plugins placement.Plugins
	// Evictions reports whether NoExecute taints evict workloads.
	Evictions bool
	// Preemption reports whether the feature gate PropagationPolicyPreemption is enabled.
	Preemption bool
	// Models reports whether estimates use the resource models that clusters report.
	Models bool
	// OvercommitProtection reports whether workloads that the simulation has placed reduce the capacity for
	// those that it places later.
	OvercommitProtection bool
}

// simulator holds the state of one simulation.
type simulator struct {
	Input
	// clusters are the clusters after the changes, and byName the same clusters by name.
	clusters []*clusterv1alpha1.Cluster
	byName   map[string]*clusterv1alpha1.Cluster
	policies *policy.Index
	// subjects are the objects with and without a binding, by the key of their binding. sorted has
	// the same subjects in the order of the result.
	subjects map[bindingKey]*subject
	sorted   []*subject
	// groups are the subjects in each workload affinity group.
	groups map[groupKey][]*subject
	// assumed are the workloads that this simulation has placed.
	assumed *capacity.AssumptionCache
}

// Run simulates the changes and returns the result for each selected object.
func Run(ctx context.Context, in Input) Result {
	s := newSimulator(in)
	for _, each := range s.candidates() {
		s.bindTemplate(ctx, each)
	}
	s.sortSubjects()
	s.attachGivenTemplates()
	s.selectAttached()
	for _, each := range s.sorted {
		if each.isSelected && s.Settings.Evictions {
			s.evict(each)
		}
	}
	s.scheduleAll()
	s.updateAttachedBindings()
	return s.result()
}

func newSimulator(in Input) *simulator {
	s := &simulator{
		Input: in, clusters: in.Changes.Apply(in.Clusters, in.Now), byName: map[string]*clusterv1alpha1.Cluster{},
		policies: policy.NewIndex(), subjects: map[bindingKey]*subject{}, groups: map[groupKey][]*subject{},
		assumed: capacity.NewAssumptionCache(),
	}
	for _, cluster := range s.clusters {
		s.byName[cluster.Name] = cluster
	}
	for _, list := range [][]policy.Object{in.Policies, in.GivenPolicies} {
		for _, each := range list {
			s.policies.Put(each)
		}
	}
	for _, bound := range in.Bindings {
		s.subjects[keyOf(bound)] = newSubject(bound, in.All)
	}
	return s
}

// cluster returns a cluster after the changes, or nil.
func (s *simulator) cluster(name string) *clusterv1alpha1.Cluster { return s.byName[name] }
