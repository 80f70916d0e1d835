// Package simulation computes to which clusters objects would go, and which copies would leave their
// clusters, if clusters, policies or templates were different.
//
// Run applies hypothetical changes to the state of a control plane and makes the decisions that the
// detector, the taint manager, the scheduler and the dependencies controller would make, with the
// functions that these programs call: policy.Decide and policy.UpdateBinding, failover.Evict,
// placement.Decide and placement.Explain, and dependency.SnapshotOf.
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

// Settings are the settings of the programs of the control plane. No object in the control plane
// holds them.
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
	// Models reports whether estimates use the grades of nodes that clusters report.
	Models bool
	// OvercommitProtection reports whether a workload that is placed in this simulation uses capacity
	// for the workloads that are placed later.
	OvercommitProtection bool
}

// run holds the state of one simulation.
type run struct {
	Input
	// clusters are the clusters after the changes, and byName the same clusters by name.
	clusters []*clusterv1alpha1.Cluster
	byName   map[string]*clusterv1alpha1.Cluster
	policies *policy.Index
	// subjects are the objects with and without a binding, by the key of their binding. sorted has
	// the same subjects in the order of the result.
	subjects map[bindingKey]*subject
	sorted   []*subject
	// groups are the subjects by namespace and key of their workload affinity groups.
	groups  map[groupKey][]*subject
	assumed *capacity.AssumptionCache
}

// Run simulates the changes and returns the result for each selected object.
func Run(ctx context.Context, in Input) Result {
	r := newRun(in)
	for _, each := range r.candidates() {
		r.bindTemplate(ctx, each)
	}
	r.sortSubjects()
	r.attachGiven()
	r.selectAttached()
	for _, each := range r.sorted {
		if each.isSelected && r.Settings.Evictions {
			r.evict(each)
		}
	}
	r.scheduleAll()
	r.followDependents()
	return r.result()
}

func newRun(in Input) *run {
	r := &run{
		Input: in, clusters: in.Changes.Apply(in.Clusters, in.Now), byName: map[string]*clusterv1alpha1.Cluster{},
		policies: policy.NewIndex(), subjects: map[bindingKey]*subject{}, groups: map[groupKey][]*subject{}, assumed: capacity.NewAssumptionCache(),
	}
	for _, cluster := range r.clusters {
		r.byName[cluster.Name] = cluster
	}
	for _, list := range [][]policy.Object{in.Policies, in.GivenPolicies} {
		for _, each := range list {
			r.policies.Put(each)
		}
	}
	for _, bound := range in.Bindings {
		r.subjects[keyOf(bound)] = newSubject(bound, in.All)
	}
	return r
}

// cluster returns a cluster after the changes, or nil.
func (r *run) cluster(name string) *clusterv1alpha1.Cluster { return r.byName[name] }
