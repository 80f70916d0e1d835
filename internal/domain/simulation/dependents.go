package simulation

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/diagnose"
)

// dependenciesOf returns references to the objects that the template needs.
func (s *simulator) dependenciesOf(ctx context.Context, template *unstructured.Unstructured) ([]dependency.Reference, error) {
	rules := s.Rules.Rules(template.GroupVersionKind())
	if rules.Dependencies == nil {
		return nil, nil
	}
	found, err := rules.Dependencies(ctx, template)
	return dependency.References(template, found), err
}

// attachGivenTemplates creates bindings for given templates without a policy if other given templates refer to
// them and propagate their dependencies.
func (s *simulator) attachGivenTemplates() {
	for _, each := range s.sorted {
		if each.failure.reason != diagnose.ReasonNoPolicyMatches {
			continue
		}
		attached := binding.New(each.resource.Namespace != "")
		attached.BindingSpec().Resource = each.resource
		for _, dependent := range s.sorted {
			if bound, ok := dependent.bound.(*workv1alpha2.ResourceBinding); ok && dependent.refersTo(each) {
				attached.BindingSpec().RequiredBy = append(attached.BindingSpec().RequiredBy, dependency.SnapshotOf(bound))
			}
		}
		if len(attached.BindingSpec().RequiredBy) > 0 {
			each.bound, each.failure = attached, finding{}
		}
	}
}

// refersTo reports whether the other subject is a dependency of s.
func (s *subject) refersTo(other *subject) bool {
	return slices.ContainsFunc(s.dependencies, func(reference dependency.Reference) bool {
		return dependency.Matches(reference, dependency.ObjectOf(other.resource), other.labels)
	})
}

// updateAttachedBindings makes the decision of the dependencies controller: it gives attached bindings the
// clusters of the bindings that they follow.
func (s *simulator) updateAttachedBindings() {
	for _, each := range s.sorted {
		if !each.isSelected || each.bound == nil {
			continue
		}
		for i, by := range each.bound.BindingSpec().RequiredBy {
			dependent := s.dependentOf(by)
			if dependent == nil || dependent.bound == dependent.before {
				continue
			}
			if bound, ok := dependent.bound.(*workv1alpha2.ResourceBinding); ok {
				each.edit().BindingSpec().RequiredBy[i] = dependency.SnapshotOf(bound)
			}
		}
	}
}
