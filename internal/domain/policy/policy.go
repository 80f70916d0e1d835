// Package policy answers: which propagation policy claims a template, and what
// does the claim make of the template's binding?
//
// A template is any object that a user stores in the control plane. A policy
// selects templates; the chosen policy marks the template with a claim (labels
// and annotations that name it), and a binding is built that carries the
// policy's wishes to the scheduler.
//
// Invariants:
//   - PropagationPolicy and ClusterPropagationPolicy take one code path;
//   - the choice among policies is a total order over (scope, explicit priority,
//     implicit priority, name): it depends neither on time nor on the order in
//     which policies are seen;
//   - the choice is made once: a claimed template stays with its policy until
//     the policy stops matching, is deleted, or is preempted;
//   - a claim is removed only by whom it names: an id has to match;
//   - nothing here writes: functions answer what to do, or change the object
//     they are handed and say whether they did.
package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Object is a PropagationPolicy or a ClusterPropagationPolicy.
type Object interface {
	metav1.Object
	runtime.Object
	PropagationSpec() *policyv1alpha1.PropagationSpec
}

var (
	_ Object = (*policyv1alpha1.PropagationPolicy)(nil)
	_ Object = (*policyv1alpha1.ClusterPropagationPolicy)(nil)
)

// IsCluster reports whether the policy is a ClusterPropagationPolicy. The
// namespace decides: policies come from an API server, which gives every
// PropagationPolicy one.
func IsCluster(policy Object) bool {
	return policy.GetNamespace() == ""
}

// PermanentIDLabel returns the label key under which the id of such a policy
// stands, on the policy itself and on what it claims.
func PermanentIDLabel(policy Object) string {
	return ClaimOf(policy).label()
}

// ExplicitPriority returns spec.priority; none means 0.
func ExplicitPriority(policy Object) int32 {
	if p := policy.PropagationSpec().Priority; p != nil {
		return *p
	}
	return 0
}

// IsLazy reports whether changes of the policy wait for the user's next change
// of each template.
func IsLazy(policy Object) bool {
	return policy.PropagationSpec().ActivationPreference == policyv1alpha1.LazyActivation
}

func isTerminating(policy Object) bool {
	return policy.GetDeletionTimestamp() != nil
}
