package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// validateClusterTaintPolicy rejects NoExecute taints unless the control plane's administrator allows
// them, because a NoExecute taint evicts all of a cluster's workloads at once.
func (r *report) validateClusterTaintPolicy(policy *policyv1alpha1.ClusterTaintPolicy, allowNoExecute bool) {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[identity]bool{}
	r.warnDisabledGate(specPath(), gateFailover, true)
	r.validateMatchConditions(specPath().Child("addOnConditions"), policy.Spec.AddOnConditions)
	r.validateMatchConditions(specPath().Child("removeOnConditions"), policy.Spec.RemoveOnConditions)
	for i, taint := range policy.Spec.Taints {
		path := specPath().Child("taints").Index(i)
		r.validateClusterTaint(path, taint)
		if taint.Effect == corev1.TaintEffectNoExecute && !allowNoExecute {
			r.addErrors(field.Forbidden(path.Child("effect"),
				"NoExecute is not allowed; the flag --allow-no-execute-taint-policy of the webhook enables it"))
		}
		id := identity{taint.Key, taint.Effect}
		if seen[id] {
			r.addErrors(field.Duplicate(path, taint.Key+":"+string(taint.Effect)))
		}
		seen[id] = true
	}
}

// validateClusterTaint rejects a taint that would be invalid in a Cluster. Otherwise the error would
// occur only when the policy adds the taint to a Cluster.
func (r *report) validateClusterTaint(path *field.Path, taint policyv1alpha1.Taint) {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
	r.validateLabelKey(path.Child("key"), taint.Key)
	r.addInvalid(path.Child("value"), taint.Value, validation.IsValidLabelValue(taint.Value))
	if !slices.Contains(effects, taint.Effect) {
		r.addErrors(field.NotSupported(path.Child("effect"), taint.Effect, effects))
	}
}

// validateMatchConditions rejects unknown operators and unknown statuses, because they never match.
func (r *report) validateMatchConditions(path *field.Path, conditions []policyv1alpha1.MatchCondition) {
	operators := []policyv1alpha1.MatchConditionOperator{policyv1alpha1.MatchConditionOpIn, policyv1alpha1.MatchConditionOpNotIn}
	statuses := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	for i, condition := range conditions {
		itemPath := path.Index(i)
		if !slices.Contains(operators, condition.Operator) {
			r.addErrors(field.NotSupported(itemPath.Child("operator"), condition.Operator, operators))
		}
		for n, status := range condition.StatusValues {
			if !slices.Contains(statuses, status) {
				r.addErrors(field.NotSupported(itemPath.Child("statusValues").Index(n), status, statuses))
			}
		}
	}
}
