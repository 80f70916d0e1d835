// Package policy decides which propagation policy claims a template, and updates the template's binding
// from this policy.
//
// A policy claims a template with labels and annotations on the template and on its binding. The
// binding also contains a copy of the policy's settings for the scheduler.
//
// Invariants:
//   - PropagationPolicies and ClusterPropagationPolicies share one code path.
//   - Policies are selected by a total order over scope, explicit priority, implicit priority and name,
//     so that the result depends neither on time nor on the order of the policies.
//   - A claimed template keeps its policy until the policy no longer selects it, is deleted, or is
//     preempted.
//   - A claim is removed only if its ID matches the policy's ID.
//   - Functions return a decision, or modify their argument and report whether it changed.
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

// IsCluster reports whether the policy is a ClusterPropagationPolicy, that is, has no namespace.
func IsCluster(policy Object) bool {
	return policy.GetNamespace() == ""
}

// PermanentIDLabel returns the key of the label that holds the policy's permanent ID, on the policy
// itself and on the objects that it claims.
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

// IsLazy reports whether changes of the policy take effect for a template only when a user next changes
// the template.
func IsLazy(policy Object) bool {
	return policy.PropagationSpec().ActivationPreference == policyv1alpha1.LazyActivation
}

func isTerminating(policy Object) bool {
	return policy.GetDeletionTimestamp() != nil
}
