// Package nodecapacity computes how many additional replicas, or sets of components, fit onto a
// cluster's nodes and into its quotas, and how many of a workload's replicas are unschedulable.
//
// Unlike package capacity, which uses only the sums over all nodes, this package considers each node
// with its labels and taints, as kube-scheduler does.
//
// Invariants:
//   - Nodes holds exact sums, regardless of the order in which nodes and Pods are added and removed. The
//     cost of a Pod's change does not depend on the size of the cluster.
//   - All other functions are pure, except that placing a workload in a Room reduces the Room.
//   - A requirement that cannot be evaluated, such as an invalid node affinity, matches no node.
package nodecapacity

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

// Unlimited is the number of replicas or sets that fit if nothing limits them.
const Unlimited int32 = math.MaxInt32

// Room holds the free resources of a cluster's nodes at a point in time. It is not safe for concurrent
// use.
type Room struct {
	nodes   []*Node
	columns capacity.ResourceColumns
	free    []capacity.ResourceVector
}

// RequestedResources returns the names of the node resources that the demand and the assumed workloads
// request. A Room needs no other resources.
func RequestedResources(demand *capacity.Demand, assumed []capacity.AssumedWorkload) capacity.ResourceColumns {
	names := map[corev1.ResourceName]struct{}{corev1.ResourcePods: {}}
	add := func(list corev1.ResourceList) {
		for name := range list {
			if capacity.IsNodeResource(name) {
				names[name] = struct{}{}
			}
		}
	}
	addComponents := func(components []workv1alpha2.Component) {
		for i := range components {
			add(componentRequirements(&components[i]).ResourceRequest)
		}
	}
	if demand.Requirements != nil {
		add(demand.Requirements.ResourceRequest)
	}
	addComponents(demand.Components)
	for i := range assumed {
		addComponents(assumed[i].Components)
	}
	return slices.Sorted(maps.Keys(names))
}

// componentRequirements returns the component's requirements, which are empty if it has none.
func componentRequirements(component *workv1alpha2.Component) *workv1alpha2.ComponentReplicaRequirements {
	if component.ReplicaRequirements == nil {
		return &workv1alpha2.ComponentReplicaRequirements{}
	}
	return component.ReplicaRequirements
}

// Matching returns the positions of the nodes on which a Pod with the claim may run. With a nil claim, a
// Pod may run on every node without taints.
func (r *Room) Matching(claim *workv1alpha2.NodeClaim) []int {
	matcher, positions := newMatcher(claim), make([]int, 0, len(r.nodes))
	for i, node := range r.nodes {
		if matcher.matches(node) {
			positions = append(positions, i)
		}
	}
	return positions
}

// Replicas returns how many replicas with the given request fit onto the nodes at the given positions.
func (r *Room) Replicas(positions []int, request corev1.ResourceList) int32 {
	vector, total := r.vector(request), int64(0)
	for _, position := range positions {
		total = capacity.SaturatingAdd(total, r.free[position].Fits(vector))
	}
	return capacity.ClampToInt32(total)
}

// Sets returns how many complete sets of components fit onto the nodes, and places them. It returns
// Unlimited if the components have no replicas and the cluster has nodes.
func (r *Room) Sets(components []workv1alpha2.Component) int32 {
	if len(r.nodes) == 0 {
		return 0
	}
	return capacity.ClampToInt32(capacity.PlaceSets(r.free, r.setParts(components), int64(Unlimited)))
}

// Place places a set of the assumed workload's components. If some replicas do not fit, only the others
// are placed.
func (r *Room) Place(workload *capacity.AssumedWorkload) {
	capacity.PlaceSets(r.free, r.setParts(workload.Components), 1)
}

// setParts converts the components to the arguments of capacity.PlaceSets.
func (r *Room) setParts(components []workv1alpha2.Component) []capacity.SetPart {
	parts := make([]capacity.SetPart, len(components))
	for i := range components {
		requirements := componentRequirements(&components[i])
		matcher := newMatcher(requirements.NodeClaim)
		parts[i] = capacity.SetPart{
			Replicas: int64(max(0, components[i].Replicas)), Request: r.vector(requirements.ResourceRequest),
			IsAllowed: func(node int) bool { return matcher.matches(r.nodes[node]) },
		}
	}
	return parts
}

// vector returns the resources that a replica with the given request consumes.
func (r *Room) vector(request corev1.ResourceList) capacity.ResourceVector {
	return r.columns.Vector(capacity.PodRequest(capacity.ResourceAmounts(request)))
}
