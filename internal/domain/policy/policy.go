// Package policy decides which propagation policy claims a template, and how the claim changes the
// binding of the template.
//
// A template is any object that a user stores in the control plane. A policy selects templates. The
// chosen policy claims the template with labels and annotations that identify the policy. A binding
// is created for the template. The binding contains the settings of the policy, so that the
// scheduler can use them.
//
// Invariants:
//   - PropagationPolicy and ClusterPropagationPolicy share one code path;
//   - policies are chosen by a total order over (scope, explicit priority, implicit priority,
//     name): the choice depends neither on time nor on the order of the policies;
//   - the choice is made once: a claimed template stays with its policy until the policy no longer
//     selects it, is deleted, or is preempted;
//   - a claim is removed only if its ID matches the ID of the policy;
//   - this package does not call the API server: functions return a decision, or change their
//     argument and report whether the argument changed.
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

// IsCluster reports whether the policy is a ClusterPropagationPolicy. It checks only the namespace,
// because a policy from an API server has a namespace exactly if it is a PropagationPolicy.
func IsCluster(policy Object) bool {
	return policy.GetNamespace() == ""
}

// PermanentIDLabel returns the key of the label that holds the permanent ID of a policy of this
// kind. The policy itself and the objects that it claims have this label.
func PermanentIDLabel(policy Object) string {
	return ClaimOf(policy).label()
}

// ExplicitPriority returns spec.priority, or 0 if it is not set.
func ExplicitPriority(policy Object) int32 {
	if p := policy.PropagationSpec().Priority; p != nil {
		return *p
	}
	return 0
}

// IsLazy reports whether a change of the policy takes effect on a template only when the user next
// changes the template.
func IsLazy(policy Object) bool {
	return policy.PropagationSpec().ActivationPreference == policyv1alpha1.LazyActivation
}

func isTerminating(policy Object) bool {
	return policy.GetDeletionTimestamp() != nil
}
