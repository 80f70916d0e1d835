package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// UnknownClusters are the clusters that a placement names and that do not exist,
// each once, in the order in which they are named. With affinity groups the one in
// use counts and, after a failure, those that were tried after it. A name that is
// misspelt looks like one of a cluster that has not joined yet, so it is no error.
func UnknownClusters(placement *policyv1alpha1.Placement, observing string, failed bool, find Lookup) []string {
	if placement == nil {
		return nil
	}
	var unknown []string
	add := func(affinity *policyv1alpha1.ClusterAffinity) {
		for _, name := range affinity.ClusterNames {
			if find(name) == nil && !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
		}
	}
	if placement.ClusterAffinity != nil {
		add(placement.ClusterAffinity)
		return unknown
	}
	for _, group := range tried(placement.ClusterAffinities, observing, failed) {
		add(&group.ClusterAffinity)
		for j := range group.OverflowAffinities {
			add(&group.OverflowAffinities[j].ClusterAffinity)
		}
	}
	return unknown
}

// namedUnknown is how many clusters a remark names.
const namedUnknown = 5

// RemarkUnknown says, in a sentence, which clusters a
// placement names that do not exist; empty when there are none.
func RemarkUnknown(names []string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, 0, namedUnknown+1)
	for _, name := range names[:min(len(names), namedUnknown)] {
		quoted = append(quoted, strconv.Quote(name))
	}
	if more := len(names) - namedUnknown; more > 0 {
		quoted = append(quoted, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return fmt.Sprintf("The placement names cluster %s, which does not exist: correct the name, or join the cluster.", quoted[0])
	}
	return fmt.Sprintf("The placement names clusters %s, which do not exist: correct the names, or join the clusters.", strings.Join(quoted, ", "))
}
