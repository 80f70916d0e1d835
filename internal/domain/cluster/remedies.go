package cluster

import (
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// RemedyActions returns the actions of all Remedies that select the cluster and match its conditions,
// sorted and without duplicates. Remedies only add actions: no Remedy can prevent an action of another
// one.
func RemedyActions(cluster *clusterv1alpha1.Cluster, remedies []remedyv1alpha1.Remedy) []string {
	var actions []string
	for i := range remedies {
		if spec := &remedies[i].Spec; IsRemedyTarget(spec, cluster.Name) && matchesAnyDecision(cluster, spec.DecisionMatches) {
			for _, action := range spec.Actions {
				actions = append(actions, string(action))
			}
		}
	}
	slices.Sort(actions)
	return slices.Compact(actions)
}

// IsRemedyTarget reports whether a Remedy selects the cluster with the given name. A Remedy without an
// affinity selects all clusters, and one whose affinity has no names selects none.
func IsRemedyTarget(spec *remedyv1alpha1.RemedySpec, cluster string) bool {
	return spec.ClusterAffinity == nil || slices.Contains(spec.ClusterAffinity.ClusterNames, cluster)
}

// NeedsRemedyUpdate reports whether the change from older to newer may change the actions that
// Remedies require for the cluster, or has changed the reported actions.
func NeedsRemedyUpdate(older, newer *clusterv1alpha1.Cluster) bool {
	return !haveSameConditionStatuses(older, newer) || !slices.Equal(older.Status.RemedyActions, newer.Status.RemedyActions)
}

// matchesAnyDecision reports whether one of the matches applies to the cluster. A nil list always
// matches, and an empty list never does.
func matchesAnyDecision(cluster *clusterv1alpha1.Cluster, matches []remedyv1alpha1.DecisionMatch) bool {
	return matches == nil || slices.ContainsFunc(matches, func(match remedyv1alpha1.DecisionMatch) bool {
		return match.ClusterConditionMatch != nil && matchesRequirement(cluster, match.ClusterConditionMatch)
	})
}

// matchesRequirement reports whether a condition of the cluster meets the requirement. A missing
// condition meets neither Equal nor NotEqual, because its status is not known yet.
func matchesRequirement(cluster *clusterv1alpha1.Cluster, requirement *remedyv1alpha1.ClusterConditionRequirement) bool {
	condition := conditions.Get(cluster.Status.Conditions, requirement.ConditionType)
	if condition == nil {
		return false
	}
	switch requirement.Operator {
	case remedyv1alpha1.ClusterConditionEqual:
		return condition.Status == requirement.ConditionStatus
	case remedyv1alpha1.ClusterConditionNotEqual:
		return condition.Status != requirement.ConditionStatus
	default:
		return false
	}
}
