package placement

import (
	"time"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
)

// NewInput returns an Input with the fields that depend only on the binding. All callers that compute a
// binding's targets use it, so that they get the same result as the scheduler. The result refers to
// the binding, which must not be modified before Schedule returns.
func NewInput(bound binding.Object, now time.Time) Input {
	return Input{
		Spec: bound.BindingSpec(), Status: withLastScheduledTime(bound, bound.BindingStatus()),
		AppliedPlacement: bound.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation],
		AvoidClusters:    failover.ReadFailures(bound, now).AvoidedClusters(),
		AvoidStrictly:    failover.KeepsFailedCopy(bound.BindingSpec()),
		Now:              now,
	}
}
