package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// clusterTaintPolicy refuses NoExecute unless the operator of the control plane
// allows it: such a taint moves every workload of a cluster at once.
func (r *report) clusterTaintPolicy(policy *policyv1alpha1.ClusterTaintPolicy, allowNoExecute bool) {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[identity]bool{}
	r.needsGate(specPath(), gateFailover, true)
	r.matchConditions(specPath().Child("addOnConditions"), policy.Spec.AddOnConditions)
	r.matchConditions(specPath().Child("removeOnConditions"), policy.Spec.RemoveOnConditions)
	for i, taint := range policy.Spec.Taints {
		at := specPath().Child("taints").Index(i)
		r.clusterTaint(at, taint)
		if taint.Effect == corev1.TaintEffectNoExecute && !allowNoExecute {
			r.add(field.Forbidden(at.Child("effect"),
				"NoExecute is not allowed; the webhook's flag --allow-no-execute-taint-policy turns it on"))
		}
		id := identity{taint.Key, taint.Effect}
		if seen[id] {
			r.add(field.Duplicate(at, taint.Key+":"+string(taint.Effect)))
		}
		seen[id] = true
	}
}

// clusterTaint refuses a taint that no Cluster can have: it would be noticed only
// when the condition comes that the policy is for.
func (r *report) clusterTaint(at *field.Path, taint policyv1alpha1.Taint) {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
	r.labelKey(at.Child("key"), taint.Key)
	r.invalid(at.Child("value"), taint.Value, validation.IsValidLabelValue(taint.Value))
	if !slices.Contains(effects, taint.Effect) {
		r.add(field.NotSupported(at.Child("effect"), taint.Effect, effects))
	}
}

// matchConditions refuses what can never match for a slip of the pen.
func (r *report) matchConditions(path *field.Path, conditions []policyv1alpha1.MatchCondition) {
	operators := []policyv1alpha1.MatchConditionOperator{policyv1alpha1.MatchConditionOpIn, policyv1alpha1.MatchConditionOpNotIn}
	statuses := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	for i, condition := range conditions {
		at := path.Index(i)
		if !slices.Contains(operators, condition.Operator) {
			r.add(field.NotSupported(at.Child("operator"), condition.Operator, operators))
		}
		for n, status := range condition.StatusValues {
			if !slices.Contains(statuses, status) {
				r.add(field.NotSupported(at.Child("statusValues").Index(n), status, statuses))
			}
		}
	}
}
