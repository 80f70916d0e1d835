package placement

import (
	"time"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
)

// NewInput returns the part of an Input that depends on the binding only. Every caller that computes
// the targets of a stored binding uses NewInput, so that all callers get the result of the
// scheduler. The result refers to the binding, which must not be modified before Schedule returns.
func NewInput(bound binding.Object, now time.Time) Input {
	return Input{
		Spec: bound.BindingSpec(), Status: bound.BindingStatus(),
		AppliedPlacement: bound.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation],
		AvoidClusters:    failover.ReadFailures(bound, now).AvoidedClusters(),
		AvoidStrictly:    failover.KeepsFailedCopy(bound.BindingSpec()),
		Now:              now,
	}
}
