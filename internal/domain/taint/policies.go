// Package taint computes the taints of a cluster after all ClusterTaintPolicies are applied.
//
// Invariants:
//   - The result does not depend on the order in which policies are passed.
//   - A taint is identified by its key and effect. It occurs at most once, and a policy changes
//     neither the value nor the time of an existing taint.
//   - Taints that are in no policy stay unchanged.
package taint

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/conditions"
)

// ApplyPolicies returns the taints of a cluster after all policies that target it are applied,
// oldest first and then by name. Each policy adds its taints if its AddOnConditions match, then
// removes them if its RemoveOnConditions match. It is applied to the result of the policies before
// it. A new taint gets the given time. The arguments are not modified.
func ApplyPolicies(cluster *clusterv1alpha1.Cluster, policies []policyv1alpha1.ClusterTaintPolicy, now metav1.Time) []corev1.Taint {
	byAge := make([]*policyv1alpha1.ClusterTaintPolicy, len(policies))
	for i := range policies {
		byAge[i] = &policies[i]
	}
	slices.SortFunc(byAge, func(a, b *policyv1alpha1.ClusterTaintPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	taints := slices.Clone(cluster.Spec.Taints)
	for _, policy := range byAge {
		if !Targets(policy, cluster) {
			continue
		}
		if matchesAll(cluster.Status.Conditions, policy.Spec.AddOnConditions) {
			taints = add(taints, policy.Spec.Taints, now)
		}
		if matchesAll(cluster.Status.Conditions, policy.Spec.RemoveOnConditions) {
			taints = remove(taints, policy.Spec.Taints)
		}
	}
	return keepTimeAdded(taints, cluster.Spec.Taints)
}

// keepTimeAdded restores the time of taints that existed before. If an older policy removes a taint
// and a younger policy adds the same taint again, the cluster keeps the taint all the time. If such
// a taint got a new time at each reconcile, a toleration with a duration would never end.
func keepTimeAdded(taints, before []corev1.Taint) []corev1.Taint {
	for i := range taints {
		at := slices.IndexFunc(before, func(previous corev1.Taint) bool {
			return previous.MatchTaint(&taints[i]) && previous.Value == taints[i].Value
		})
		if at >= 0 {
			taints[i].TimeAdded = before[at].TimeAdded
		}
	}
	return taints
}

// Targets reports whether the policy selects the cluster. A policy without target clusters
// selects all clusters.
func Targets(policy *policyv1alpha1.ClusterTaintPolicy, cluster *clusterv1alpha1.Cluster) bool {
	return clusteraffinity.Matches(cluster, policy.Spec.TargetClusters)
}

// NeedsReevaluation reports whether a change of a cluster may change the taints that policies add.
// This is the case if the status of a condition changed, or a field by which policies select
// clusters.
func NeedsReevaluation(older, newer *clusterv1alpha1.Cluster) bool {
	return !slices.EqualFunc(older.Status.Conditions, newer.Status.Conditions, func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status
	}) || !sameSelectorFields(older, newer)
}

func matchesAll(stored []metav1.Condition, wanted []policyv1alpha1.MatchCondition) bool {
	return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(match policyv1alpha1.MatchCondition) bool {
		return !matchesCondition(stored, match)
	})
}

// matchesCondition reports whether the condition matches. A missing condition never matches,
// because it is not known yet.
func matchesCondition(stored []metav1.Condition, match policyv1alpha1.MatchCondition) bool {
	condition := conditions.Get(stored, match.ConditionType)
	if condition == nil {
		return false
	}
	listed := slices.Contains(match.StatusValues, condition.Status)
	switch match.Operator {
	case policyv1alpha1.MatchConditionOpIn:
		return listed
	case policyv1alpha1.MatchConditionOpNotIn:
		return !listed
	default:
		return false
	}
}

func add(taints []corev1.Taint, wanted []policyv1alpha1.Taint, now metav1.Time) []corev1.Taint {
	for _, taint := range wanted {
		if !slices.ContainsFunc(taints, hasKeyAndEffect(taint)) {
			taints = append(taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect, TimeAdded: now.DeepCopy()})
		}
	}
	return taints
}

func remove(taints []corev1.Taint, unwanted []policyv1alpha1.Taint) []corev1.Taint {
	for _, taint := range unwanted {
		taints = slices.DeleteFunc(taints, hasKeyAndEffect(taint))
	}
	return taints
}

func hasKeyAndEffect(wanted policyv1alpha1.Taint) func(corev1.Taint) bool {
	return func(taint corev1.Taint) bool { return taint.Key == wanted.Key && taint.Effect == wanted.Effect }
}
