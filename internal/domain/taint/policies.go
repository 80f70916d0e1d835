// Package taint answers: which taints does a cluster bear when the policies about
// its conditions have had their say?
//
// Invariants:
//   - the answer does not depend on the order in which policies are handed in;
//   - a taint is one by its key and effect: it is never there twice, and a policy
//     neither changes the value nor the time of one that is there;
//   - what no policy says anything about stays.
package taint

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
)

// ByPolicies are the taints of a cluster after all policies that target it: the
// oldest first, and by name those that are of the same age. Each adds its taints if
// its conditions for that match, then removes them if its conditions for that do,
// and sees what those before it have left. A new taint bears the time given. The
// arguments are left alone.
func ByPolicies(cluster *clusterv1alpha1.Cluster, policies []policyv1alpha1.ClusterTaintPolicy, now metav1.Time) []corev1.Taint {
	ordered := make([]*policyv1alpha1.ClusterTaintPolicy, len(policies))
	for i := range policies {
		ordered[i] = &policies[i]
	}
	slices.SortFunc(ordered, func(a, b *policyv1alpha1.ClusterTaintPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	taints := slices.Clone(cluster.Spec.Taints)
	for _, policy := range ordered {
		if !Targets(policy, cluster) {
			continue
		}
		if matches(cluster.Status.Conditions, policy.Spec.AddOnConditions) {
			taints = add(taints, policy.Spec.Taints, now)
		}
		if matches(cluster.Status.Conditions, policy.Spec.RemoveOnConditions) {
			taints = remove(taints, policy.Spec.Taints)
		}
	}
	return dated(taints, cluster.Spec.Taints)
}

// dated gives taints the time that they had. One that a policy removes and a younger
// one adds was never gone: with a new time at each look, what tolerates it for a while
// would do so for ever.
func dated(taints, before []corev1.Taint) []corev1.Taint {
	for i := range taints {
		at := slices.IndexFunc(before, func(was corev1.Taint) bool { return was.MatchTaint(&taints[i]) && was.Value == taints[i].Value })
		if at >= 0 {
			taints[i].TimeAdded = before[at].TimeAdded
		}
	}
	return taints
}

// Targets tells whether a policy is about a cluster. One that names no clusters is
// about all.
func Targets(policy *policyv1alpha1.ClusterTaintPolicy, cluster *clusterv1alpha1.Cluster) bool {
	return placement.Matches(cluster, policy.Spec.TargetClusters)
}

// Concerns tells that a change of a cluster may change what policies say of it:
// another status of a condition, or another answer to whom they target.
func Concerns(older, newer *clusterv1alpha1.Cluster) bool {
	return !slices.EqualFunc(older.Status.Conditions, newer.Status.Conditions, func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status
	}) || !sameTarget(older, newer)
}

func matches(stored []metav1.Condition, wanted []policyv1alpha1.MatchCondition) bool {
	return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(match policyv1alpha1.MatchCondition) bool {
		return !matchesOne(stored, match)
	})
}

// matchesOne never holds of a condition that is not there: nobody has looked yet.
func matchesOne(stored []metav1.Condition, match policyv1alpha1.MatchCondition) bool {
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
		if !slices.ContainsFunc(taints, isSame(taint)) {
			taints = append(taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect, TimeAdded: now.DeepCopy()})
		}
	}
	return taints
}

func remove(taints []corev1.Taint, unwanted []policyv1alpha1.Taint) []corev1.Taint {
	for _, taint := range unwanted {
		taints = slices.DeleteFunc(taints, isSame(taint))
	}
	return taints
}

func isSame(wanted policyv1alpha1.Taint) func(corev1.Taint) bool {
	return func(taint corev1.Taint) bool { return taint.Key == wanted.Key && taint.Effect == wanted.Effect }
}
