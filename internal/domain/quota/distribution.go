package quota

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// AssignedClusters returns the limits of each cluster that has a static assignment. If a cluster has
// several, the first one counts.
func AssignedClusters(quota *policyv1alpha1.FederatedResourceQuota) map[string]corev1.ResourceList {
	limits := make(map[string]corev1.ResourceList, len(quota.Spec.StaticAssignments))
	for _, assignment := range quota.Spec.StaticAssignments {
		if _, isAssigned := limits[assignment.ClusterName]; !isAssigned {
			limits[assignment.ClusterName] = assignment.Hard
		}
	}
	return limits
}

// NewResourceQuota returns the ResourceQuota of a cluster. It has the UID of the federated quota, so
// that the ResourceQuota of an earlier Work is recognized.
func NewResourceQuota(quota *policyv1alpha1.FederatedResourceQuota, hard corev1.ResourceList) *unstructured.Unstructured {
	limits := make(map[string]any, len(hard))
	for name, quantity := range hard {
		limits[string(name)] = quantity.String()
	}
	created := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota", "spec": map[string]any{"hard": limits},
	}}
	created.SetNamespace(quota.Namespace)
	created.SetName(quota.Name)
	created.SetUID(quota.UID)
	return created
}

// AggregateStatus returns the statuses of the quota's ResourceQuotas in the clusters, sorted by cluster
// name. It leaves out clusters that have no assignment, that have not applied their ResourceQuota, or
// that have not reported a valid status. Of a status it keeps only the assigned resources, because a
// member may report anything.
func AggregateStatus(quota *policyv1alpha1.FederatedResourceQuota, works []*workv1alpha1.Work) []policyv1alpha1.ClusterQuotaStatus {
	var statuses []policyv1alpha1.ClusterQuotaStatus
	assigned := AssignedClusters(quota)
	for _, each := range works {
		cluster, _ := work.ClusterOf(each.Namespace)
		limits, isAssigned := assigned[cluster]
		isApplied := conditions.HasStatus(each.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionTrue)
		if !isAssigned || !isApplied || len(each.Status.ManifestStatuses) == 0 {
			continue
		}
		if reported := decodeStatus(each.Status.ManifestStatuses[0].Status, limits); reported != nil {
			statuses = append(statuses, policyv1alpha1.ClusterQuotaStatus{ClusterName: cluster, ResourceQuotaStatus: *reported})
		}
	}
	slices.SortFunc(statuses, func(a, b policyv1alpha1.ClusterQuotaStatus) int { return cmp.Compare(a.ClusterName, b.ClusterName) })
	return statuses
}

// decodeStatus returns what a member reported about the given resources, or nil if it reported nothing
// or something invalid.
func decodeStatus(raw *runtime.RawExtension, limits corev1.ResourceList) *corev1.ResourceQuotaStatus {
	reported := corev1.ResourceQuotaStatus{}
	if raw == nil || len(raw.Raw) == 0 || json.Unmarshal(raw.Raw, &reported) != nil {
		return nil
	}
	status := &corev1.ResourceQuotaStatus{Hard: onlyResources(reported.Hard, limits), Used: onlyResources(reported.Used, limits)}
	if len(status.Hard)+len(status.Used) == 0 {
		return nil
	}
	return status
}

// onlyResources returns the given resources of a list, without negative quantities.
func onlyResources(list, names corev1.ResourceList) corev1.ResourceList {
	kept := corev1.ResourceList{}
	for name := range names {
		if quantity, ok := list[name]; ok && quantity.Sign() >= 0 {
			kept[name] = quantity
		}
	}
	return kept
}

// TotalUsed returns the sum of the usages in the clusters.
func TotalUsed(statuses []policyv1alpha1.ClusterQuotaStatus) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range statuses {
		AddUsage(sum, statuses[i].Used)
	}
	return sum
}

// HasEqualStatus reports whether two statuses contain the same quantities, in any notation.
func HasEqualStatus(a, b *policyv1alpha1.FederatedResourceQuotaStatus) bool {
	return IsEqual(a.Overall, b.Overall) && IsEqual(a.OverallUsed, b.OverallUsed) &&
		slices.EqualFunc(a.AggregatedStatus, b.AggregatedStatus, func(x, y policyv1alpha1.ClusterQuotaStatus) bool {
			return x.ClusterName == y.ClusterName && IsEqual(x.Hard, y.Hard) && IsEqual(x.Used, y.Used)
		})
}
