package cluster

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/conditions"
)

// ApplyTaintPolicies returns the cluster's taints after all ClusterTaintPolicies that target the
// cluster are applied. Policies are applied from the oldest to the youngest, then by name, each to the
// result of the previous one. A policy first adds its taints if its AddOnConditions match, and then
// removes them if its RemoveOnConditions match. An added taint gets the time now.
//
// A taint is identified by its key and effect. A policy changes neither the value nor the time of an
// existing taint, and taints that no policy lists stay. The arguments are not modified.
func ApplyTaintPolicies(cluster *clusterv1alpha1.Cluster, policies []policyv1alpha1.ClusterTaintPolicy, now metav1.Time) []corev1.Taint {
	byAge := make([]*policyv1alpha1.ClusterTaintPolicy, len(policies))
	for i := range policies {
		byAge[i] = &policies[i]
	}
	slices.SortFunc(byAge, func(a, b *policyv1alpha1.ClusterTaintPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	taints := slices.Clone(cluster.Spec.Taints)
	for _, policy := range byAge {
		if !IsTaintPolicyTarget(policy, cluster) {
			continue
		}
		if matchesAllConditions(cluster.Status.Conditions, policy.Spec.AddOnConditions) {
			taints = addTaints(taints, policy.Spec.Taints, now)
		}
		if matchesAllConditions(cluster.Status.Conditions, policy.Spec.RemoveOnConditions) {
			taints = removeTaints(taints, policy.Spec.Taints)
		}
	}
	return keepTimeAdded(taints, cluster.Spec.Taints)
}

// keepTimeAdded restores the time of taints that existed before. An older policy may remove a taint
// that a younger policy adds again. The cluster then has the taint all the time, so if each reconcile
// set a new time, a toleration with tolerationSeconds would never end.
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

// IsTaintPolicyTarget reports whether the policy targets the cluster. A policy without target
// clusters targets all clusters.
func IsTaintPolicyTarget(policy *policyv1alpha1.ClusterTaintPolicy, cluster *clusterv1alpha1.Cluster) bool {
	return clusteraffinity.Matches(cluster, policy.Spec.TargetClusters)
}

// NeedsTaintUpdate reports whether the change from older to newer may change the taints that policies
// add: a condition has another status, or a field by which policies select clusters has changed.
func NeedsTaintUpdate(older, newer *clusterv1alpha1.Cluster) bool {
	return !haveSameConditionStatuses(older, newer) || !haveSameSelectorFields(older, newer)
}

func haveSameConditionStatuses(older, newer *clusterv1alpha1.Cluster) bool {
	return slices.EqualFunc(older.Status.Conditions, newer.Status.Conditions, func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status
	})
}

// haveSameSelectorFields reports whether older and newer have equal labels and fields, so that the same
// policies target both states of the cluster.
func haveSameSelectorFields(older, newer *clusterv1alpha1.Cluster) bool {
	return maps.Equal(older.Labels, newer.Labels) &&
		older.Spec.Provider == newer.Spec.Provider && older.Spec.Region == newer.Spec.Region &&
		older.Spec.Zone == newer.Spec.Zone && slices.Equal(older.Spec.Zones, newer.Spec.Zones)
}

func matchesAllConditions(stored []metav1.Condition, wanted []policyv1alpha1.MatchCondition) bool {
	return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(match policyv1alpha1.MatchCondition) bool {
		return !matchesCondition(stored, match)
	})
}

// matchesCondition reports whether a stored condition matches. A missing condition matches neither In
// nor NotIn, because its status is not known yet.
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

func addTaints(taints []corev1.Taint, wanted []policyv1alpha1.Taint, now metav1.Time) []corev1.Taint {
	for _, taint := range wanted {
		if !slices.ContainsFunc(taints, hasKeyAndEffect(taint)) {
			taints = append(taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect, TimeAdded: now.DeepCopy()})
		}
	}
	return taints
}

func removeTaints(taints []corev1.Taint, unwanted []policyv1alpha1.Taint) []corev1.Taint {
	for _, taint := range unwanted {
		taints = slices.DeleteFunc(taints, hasKeyAndEffect(taint))
	}
	return taints
}

func hasKeyAndEffect(wanted policyv1alpha1.Taint) func(corev1.Taint) bool {
	return func(taint corev1.Taint) bool { return taint.Key == wanted.Key && taint.Effect == wanted.Effect }
}
