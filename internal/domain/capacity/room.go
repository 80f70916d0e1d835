package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// room is the part of a cluster that is available to a demand.
type room struct {
	summary *clusterv1alpha1.ResourceSummary
	// grades are valid only if hasGrades is true.
	grades    []grade
	hasGrades bool
}

// newRoom returns the resources of a cluster that assumed workloads do not use.
func newRoom(cluster *clusterv1alpha1.Cluster, models bool, assumed []AssumedWorkload) room {
	r := room{summary: cluster.Status.ResourceSummary}
	if models {
		r.grades, r.hasGrades = nodeGrades(cluster)
	}
	if len(assumed) > 0 && r.summary != nil {
		parts := combineAssumed(assumed)
		r.summary = withAllocating(r.summary, parts)
		// The time to reserve resources grows with the number of different requests.
		for _, part := range parts[:min(len(parts), maxReservations)] {
			r.grades = reserveOnGrades(r.grades, part)
		}
	}
	return r
}

// maxReservations is the largest number of different requests that are reserved on the nodes of
// grades. Other requests are only subtracted from the sum over all nodes.
const maxReservations = 64

// combineAssumed returns the requests of all assumed workloads. Equal requests are combined. The
// requests with the most replicas are first.
func combineAssumed(assumed []AssumedWorkload) []componentRequest {
	var combined []componentRequest
	positions := map[string]int{}
	for i := range assumed {
		for _, part := range componentRequests(assumed[i].Components) {
			if part.replicas == 0 {
				continue
			}
			key := requestKey(part.request)
			at, known := positions[key]
			if !known {
				positions[key] = len(combined)
				combined = append(combined, part)
				continue
			}
			combined[at].replicas = SaturatingAdd(combined[at].replicas, part.replicas)
		}
	}
	slices.SortStableFunc(combined, func(a, b componentRequest) int { return cmp.Compare(b.replicas, a.replicas) })
	return combined
}

// requestKey returns equal texts for equal requests.
func requestKey(request map[corev1.ResourceName]int64) string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(request)) {
		fmt.Fprintf(&key, "%s=%d,", name, request[name])
	}
	return key.String()
}

// withAllocating returns a copy of the summary in which the parts are allocating.
func withAllocating(summary *clusterv1alpha1.ResourceSummary, parts []componentRequest) *clusterv1alpha1.ResourceSummary {
	added := map[corev1.ResourceName]int64{}
	for _, part := range parts {
		for name, each := range part.request {
			if name != corev1.ResourcePods {
				added[name] = SaturatingAdd(added[name], SaturatingMultiply(each, part.replicas))
			}
		}
		added[corev1.ResourcePods] = SaturatingAdd(added[corev1.ResourcePods], part.replicas)
	}
	changed := *summary
	changed.Allocating = maps.Clone(summary.Allocating)
	if changed.Allocating == nil {
		changed.Allocating = corev1.ResourceList{}
	}
	for name, value := range added {
		sum := SaturatingAdd(max(0, ResourceAmount(name, summary.Allocating[name])), value)
		if name == corev1.ResourceCPU {
			changed.Allocating[name] = *resource.NewMilliQuantity(sum, resource.DecimalSI)
		} else {
			changed.Allocating[name] = *resource.NewQuantity(sum, resource.DecimalSI)
		}
	}
	return &changed
}

// reserveOnGrades places the replicas of a part on the nodes of the grades, first fit. It returns
// the grades with the remaining resources. A grade with partly used nodes is split, so the time does
// not depend on the number of nodes or replicas. Replicas that do not fit are ignored.
func reserveOnGrades(grades []grade, part componentRequest) []grade {
	request := PodRequest(part.request)
	columns := ResourceColumnsOf(request)
	vector := columns.Vector(request)
	remaining, reserved := part.replicas, make([]grade, 0, len(grades)+2)
	for _, g := range grades {
		perNode := columns.Vector(g.free).Fits(vector)
		if perNode <= 0 || remaining == 0 {
			reserved = append(reserved, g)
			continue
		}
		full := min(g.nodes, remaining/perNode)
		remaining -= full * perNode // at most the replicas that remain
		reserved = appendGrade(reserved, g, full, request, perNode)
		if full < g.nodes && remaining > 0 {
			reserved = appendGrade(reserved, g, 1, request, remaining)
			full, remaining = full+1, 0
		}
		reserved = appendGrade(reserved, g, g.nodes-full, request, 0)
	}
	return reserved
}

// appendGrade appends a number of nodes of a grade, each without the resources of some replicas.
func appendGrade(grades []grade, g grade, nodes int64, request map[corev1.ResourceName]int64, replicas int64) []grade {
	if nodes == 0 {
		return grades
	}
	free := maps.Clone(g.free)
	for name, each := range request {
		free[name] = SaturatingSubtract(free[name], SaturatingMultiply(each, replicas))
	}
	return append(grades, grade{number: g.number, nodes: nodes, free: free})
}
