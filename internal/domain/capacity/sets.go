package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// availableSets returns how many more whole sets of components fit. If the cluster reports grades of
// nodes, the sets must also fit onto nodes of these grades.
func (r room) availableSets(components []workv1alpha2.Component) int32 {
	pods := freePods(r.summary)
	if pods <= 0 {
		return 0
	}
	parts := componentRequests(components)
	wantedPods, wanted := int64(0), map[corev1.ResourceName]int64{}
	for _, part := range parts {
		wantedPods = SaturatingAdd(wantedPods, part.replicas)
		for name, each := range part.request {
			wanted[name] = SaturatingAdd(wanted[name], SaturatingMultiply(each, part.replicas))
		}
	}
	if wantedPods <= 0 {
		return ClampToInt32(pods)
	}
	limit := min(pods/wantedPods, countFits(r.summary, wanted))
	if r.hasGrades {
		limit = placeSetsOnGroups(r.grades, parts, int64(ClampToInt32(limit)))
	}
	return ClampToInt32(limit)
}

// componentRequest holds the replicas and the resource request of a component as numbers.
type componentRequest struct {
	replicas int64
	request  map[corev1.ResourceName]int64
}

func componentRequests(components []workv1alpha2.Component) []componentRequest {
	parts := make([]componentRequest, len(components))
	for i := range components {
		parts[i].replicas = max(0, int64(components[i].Replicas))
		if requirements := components[i].ReplicaRequirements; requirements != nil && parts[i].replicas > 0 {
			parts[i].request = ResourceAmounts(requirements.ResourceRequest)
		}
	}
	return parts
}

// placeSets places whole sets on the nodes of the grades, first fit, and returns how many sets fit,
// at most limit.
func placeSets(grades []grade, parts []componentRequest, limit int64) int64 {
	requests := make([]map[corev1.ResourceName]int64, len(parts))
	for i := range parts {
		requests[i] = PodRequest(parts[i].request)
	}
	columns := ResourceColumnsOf(requests...)
	components := make([]SetPart, len(parts))
	for i := range parts {
		components[i] = SetPart{Replicas: parts[i].replicas, Request: columns.Vector(requests[i])}
	}
	return PlaceSets(makeNodes(grades, columns, totalReplicas(parts, limit)), components, limit)
}

// makeNodes returns the nodes of all grades. The number of nodes of one grade is at most the number
// of replicas to place.
func makeNodes(grades []grade, columns ResourceColumns, replicas int64) []ResourceVector {
	var nodes []ResourceVector
	for _, g := range grades {
		free := columns.Vector(g.free)
		for range min(g.nodes, replicas) {
			nodes = append(nodes, slices.Clone(free))
		}
	}
	return nodes
}

// totalReplicas returns the number of replicas in the given number of sets.
func totalReplicas(parts []componentRequest, sets int64) int64 {
	replicas := int64(0)
	for i := range parts {
		replicas = SaturatingAdd(replicas, SaturatingMultiply(parts[i].replicas, sets))
	}
	return replicas
}
