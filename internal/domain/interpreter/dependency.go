package interpreter

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// ValidateDependencies returns an error if a reference lacks an apiVersion or a kind, or has neither a
// name nor a valid label selector.
func ValidateDependencies(dependencies []configv1alpha1.DependentObjectReference) error {
	for i := range dependencies {
		if err := validateDependency(&dependencies[i]); err != nil {
			return fmt.Errorf("dependency %d: %w", i, err)
		}
	}
	return nil
}

func validateDependency(dependency *configv1alpha1.DependentObjectReference) error {
	if dependency.APIVersion == "" {
		return errors.New("apiVersion is missing")
	}
	if dependency.Kind == "" {
		return errors.New("kind is missing")
	}
	if dependency.Name == "" && dependency.LabelSelector == nil {
		return errors.New("neither name nor labelSelector is given")
	}
	if _, err := metav1.LabelSelectorAsSelector(dependency.LabelSelector); err != nil {
		return fmt.Errorf("reading the label selector: %w", err)
	}
	return nil
}

type dependencyRule = func(context.Context, *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)

// withValidation returns a rule that validates the given rule's result with ValidateDependencies.
func withValidation(rule dependencyRule) dependencyRule {
	return func(ctx context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
		dependencies, err := rule(ctx, template)
		if err != nil {
			return nil, err
		}
		if err := ValidateDependencies(dependencies); err != nil {
			return nil, fmt.Errorf("validating the dependencies of %s %s/%s: %w",
				template.GetKind(), template.GetNamespace(), template.GetName(), err)
		}
		return dependencies, nil
	}
}
