package workstatus

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// interpretStatus returns the part of the status of an object in the member that is reported in the
// Work, or nil if there is none.
func (c *controller) interpretStatus(ctx context.Context, observed *unstructured.Unstructured) (*runtime.RawExtension, error) {
	rule := c.rules.Rules(observed.GroupVersionKind()).ReflectStatus
	if rule == nil {
		return nil, nil
	}
	return rule(ctx, observed)
}

// interpretHealth returns the health of the object. An object of a kind without a health rule
// counts as healthy. If the rule returns an error, the health is unknown. A
// BusyError leaves the health as it is.
func (c *controller) interpretHealth(ctx context.Context, karmadaWork *workv1alpha1.Work,
	observed *unstructured.Unstructured) (workv1alpha1.ResourceHealth, error) {
	rule := c.rules.Rules(observed.GroupVersionKind()).IsHealthy
	if rule == nil {
		return workv1alpha1.ResourceHealthy, nil
	}
	healthy, err := rule(ctx, observed)
	if err != nil {
		err = fmt.Errorf("interpreting the health of %s %s/%s: %w", observed.GetKind(), observed.GetNamespace(), observed.GetName(), err)
		if interpreter.IsBusy(err) {
			return "", err
		}
		c.events.RecordFailure(karmadaWork, workv1alpha1.EventReasonInterpretHealthFailed, err)
		return workv1alpha1.ResourceUnknown, err
	}
	c.events.ClearFailure(karmadaWork, workv1alpha1.EventReasonInterpretHealthFailed)
	c.events.RecordSuccess(karmadaWork, workv1alpha1.EventReasonInterpretHealthSucceed, "Interpreted the health of %s %s/%s",
		observed.GetKind(), observed.GetNamespace(), observed.GetName())
	if healthy {
		return workv1alpha1.ResourceHealthy, nil
	}
	return workv1alpha1.ResourceUnhealthy, nil
}
