package cluster

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// APIEnablements returns a member's APIs in the form of a Cluster's status: sorted by group and
// version, each with its resources sorted by name, without subresources.
func APIEnablements(lists []*metav1.APIResourceList) []clusterv1alpha1.APIEnablement {
	enablements := make([]clusterv1alpha1.APIEnablement, 0, len(lists))
	for _, list := range lists {
		if list == nil {
			continue
		}
		enablement := clusterv1alpha1.APIEnablement{GroupVersion: list.GroupVersion}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				enablement.Resources = append(enablement.Resources, clusterv1alpha1.APIResource{Name: resource.Name, Kind: resource.Kind})
			}
		}
		slices.SortFunc(enablement.Resources, func(a, b clusterv1alpha1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		enablements = append(enablements, enablement)
	}
	slices.SortFunc(enablements, func(a, b clusterv1alpha1.APIEnablement) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	return enablements
}

// CompleteAPIEnablementsCondition returns the condition that reports whether the API list is complete.
// complete is true if discovery ended without an error.
func CompleteAPIEnablementsCondition(enablements []clusterv1alpha1.APIEnablement, complete bool, generation int64,
	now metav1.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionFalse,
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	switch {
	case len(enablements) == 0:
		condition.Reason = clusterv1alpha1.APIEnablementsEmptyReason
		condition.Message = "collected empty APIEnablements from the cluster"
	case !complete:
		condition.Reason = clusterv1alpha1.APIEnablementsPartialReason
		condition.Message = "might collect partial APIEnablements from the cluster"
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason = clusterv1alpha1.APIEnablementsCompleteReason
		condition.Message = "collected complete APIEnablements from the cluster"
	}
	return condition
}

// MergeAPIEnablements returns the entries in seen, which discovery read, and the stored entries of the
// groups that discovery could not read, because a group's failed discovery does not prove that the
// group was removed. isUnread reports whether a group version was not read. If it is nil, all group
// versions were read. If seen is empty, all stored entries are kept.
func MergeAPIEnablements(stored, seen []clusterv1alpha1.APIEnablement,
	isUnread func(groupVersion string) bool) []clusterv1alpha1.APIEnablement {
	merged := slices.Clone(seen)
	for _, enablement := range stored {
		kept := len(seen) == 0 || isUnread != nil && isUnread(enablement.GroupVersion)
		if kept && !slices.ContainsFunc(seen, func(e clusterv1alpha1.APIEnablement) bool { return e.GroupVersion == enablement.GroupVersion }) {
			merged = append(merged, enablement)
		}
	}
	slices.SortFunc(merged, func(a, b clusterv1alpha1.APIEnablement) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	return merged
}
