package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// UnknownClusters returns the clusters that a placement names and that do not exist, without
// duplicates, in the order of the placement. With affinity groups it checks the group in use or,
// after a failure, all groups. An unknown name is not an error, because the cluster may join later.
func UnknownClusters(placement *policyv1alpha1.Placement, activeGroup string, failed bool, lookup ClusterLookup) []string {
	if placement == nil {
		return nil
	}
	var unknown []string
	add := func(affinity *policyv1alpha1.ClusterAffinity) {
		for _, name := range affinity.ClusterNames {
			if lookup(name) == nil && !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
		}
	}
	if placement.ClusterAffinity != nil {
		add(placement.ClusterAffinity)
		return unknown
	}
	for _, group := range relevantGroups(placement.ClusterAffinities, activeGroup, failed) {
		add(&group.ClusterAffinity)
		for j := range group.OverflowAffinities {
			add(&group.OverflowAffinities[j].ClusterAffinity)
		}
	}
	return unknown
}

// maxNamedClusters is the maximum number of clusters that one message names.
const maxNamedClusters = 5

// DescribeUnknownClusters returns a sentence about the clusters that a placement names and that do
// not exist. It returns an empty string if there are no names.
func DescribeUnknownClusters(names []string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, 0, maxNamedClusters+1)
	for _, name := range names[:min(len(names), maxNamedClusters)] {
		quoted = append(quoted, strconv.Quote(name))
	}
	if more := len(names) - maxNamedClusters; more > 0 {
		quoted = append(quoted, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return fmt.Sprintf("The placement names cluster %s, which does not exist: correct the name, or join the cluster.", quoted[0])
	}
	return fmt.Sprintf("The placement names clusters %s, which do not exist: correct the names, or join the clusters.",
		strings.Join(quoted, ", "))
}
