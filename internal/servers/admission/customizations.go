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

// Customizations lists the stored customizations. The validation of a customization depends on all
// other customizations.
type Customizations func(ctx context.Context) ([]*configv1alpha1.ResourceInterpreterCustomization, error)

// StoredCustomizations lists the customizations of the control plane on each call. It uses no
// cache, because an outdated cache would allow two customizations for the same operation, and
// because customizations change rarely.
func StoredCustomizations(karmada dynamic.Interface) Customizations {
	resource := configv1alpha1.GroupVersion.WithResource("resourceinterpretercustomizations")
	return func(ctx context.Context) ([]*configv1alpha1.ResourceInterpreterCustomization, error) {
		list, err := karmada.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing the other customizations: %w", err)
		}
		stored := make([]*configv1alpha1.ResourceInterpreterCustomization, 0, len(list.Items))
		for i := range list.Items {
			customization := &configv1alpha1.ResourceInterpreterCustomization{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, customization); err != nil {
				return nil, fmt.Errorf("decoding customization %s: %w", list.Items[i].GetName(), err)
			}
			stored = append(stored, customization)
		}
		return stored, nil
	}
}

// rulesFor returns the rules for one object. The rules contain the stored objects that the
// validation of the object depends on.
func (r Reviewer) rulesFor(ctx context.Context, object runtime.Object) (rules.Options, error) {
	if _, ok := object.(*configv1alpha1.ResourceInterpreterCustomization); !ok || r.Customizations == nil {
		return r.Rules, nil
	}
	stored, err := r.Customizations(ctx)
	if err != nil {
		return rules.Options{}, &unavailableError{err}
	}
	objectRules := r.Rules
	objectRules.Customizations = func() []*configv1alpha1.ResourceInterpreterCustomization { return stored }
	return objectRules, nil
}

// unavailableError means that an object could not be validated, because required data could not be
// read.
type unavailableError struct{ err error }

func (u *unavailableError) Error() string { return u.err.Error() }
func (u *unavailableError) Unwrap() error { return u.err }

func isUnavailable(err error) bool {
	var unavailable *unavailableError
	return errors.As(err, &unavailable)
}
