package admission

import (
	corev1 "k8s.io/api/core/v1"
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
	for i, taint := range policy.Spec.Taints {
		at := specPath().Child("taints").Index(i)
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
