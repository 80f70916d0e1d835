package admission

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	rules "karmada.io/karmada/internal/domain/admission"
)

// Customizations lists what is stored of a kind that is judged by what else is
// there.
type Customizations func(ctx context.Context) ([]*configv1alpha1.ResourceInterpreterCustomization, error)

// StoredCustomizations asks the control plane each time: customizations change
// rarely, and a copy that is late would let two of them answer one question.
func StoredCustomizations(karmada dynamic.Interface) Customizations {
	resource := configv1alpha1.GroupVersion.WithResource("resourceinterpretercustomizations")
	return func(ctx context.Context) ([]*configv1alpha1.ResourceInterpreterCustomization, error) {
		list, err := karmada.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing the other customizations: %w", err)
		}
		stored := make([]*configv1alpha1.ResourceInterpreterCustomization, 0, len(list.Items))
		for i := range list.Items {
			one := &configv1alpha1.ResourceInterpreterCustomization{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, one); err != nil {
				return nil, fmt.Errorf("decoding customization %s: %w", list.Items[i].GetName(), err)
			}
			stored = append(stored, one)
		}
		return stored, nil
	}
}

// rulesFor returns the rules with what has to be looked up for one object.
func (r Reviewer) rulesFor(ctx context.Context, object runtime.Object) (rules.Rules, error) {
	if _, ok := object.(*configv1alpha1.ResourceInterpreterCustomization); !ok || r.Customizations == nil {
		return r.Rules, nil
	}
	stored, err := r.Customizations(ctx)
	if err != nil {
		return rules.Rules{}, &unavailableError{err}
	}
	informed := r.Rules
	informed.Customizations = func() []*configv1alpha1.ResourceInterpreterCustomization { return stored }
	return informed, nil
}

// unavailableError says that an object could not be judged.
type unavailableError struct{ err error }

func (e *unavailableError) Error() string { return e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }

func isUnavailable(err error) bool {
	var unavailable *unavailableError
	return errors.As(err, &unavailable)
}
