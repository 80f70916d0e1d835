package simulation

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
)

// dependenciesOf returns the objects to which a template refers.
func (r *run) dependenciesOf(ctx context.Context, template *unstructured.Unstructured) ([]dependency.Reference, error) {
	rules := r.Rules.Rules(template.GroupVersionKind())
	if rules.Dependencies == nil {
		return nil, nil
	}
	found, err := rules.Dependencies(ctx, template)
	return dependency.References(template, found), err
}

// attachGiven attaches the given templates without a policy to the given templates that refer to them
// and whose policy propagates dependencies.
func (r *run) attachGiven() {
	for _, each := range r.sorted {
		if each.failure.reason != ReasonNoPolicyMatches {
			continue
		}
		attached := binding.New(each.resource.Namespace != "")
		attached.BindingSpec().Resource = each.resource
		for _, dependent := range r.sorted {
			if bound, ok := dependent.bound.(*workv1alpha2.ResourceBinding); ok && dependent.refersTo(each) {
				attached.BindingSpec().RequiredBy = append(attached.BindingSpec().RequiredBy, dependency.SnapshotOf(bound))
			}
		}
		if len(attached.BindingSpec().RequiredBy) > 0 {
			each.bound, each.failure = attached, finding{}
		}
	}
}

func (s *subject) refersTo(other *subject) bool {
	return slices.ContainsFunc(s.dependencies, func(reference dependency.Reference) bool {
		return dependency.Matches(reference, dependency.ObjectOf(other.resource), other.labels)
	})
}

// followDependents gives attached bindings the clusters of the bindings that they follow.
func (r *run) followDependents() {
	for _, each := range r.sorted {
		if !each.isSelected || each.bound == nil {
			continue
		}
		for i, by := range each.bound.BindingSpec().RequiredBy {
			dependent := r.dependentOf(by)
			if dependent == nil || dependent.bound == dependent.before {
				continue
			}
			if bound, ok := dependent.bound.(*workv1alpha2.ResourceBinding); ok {
				each.edit().BindingSpec().RequiredBy[i] = dependency.SnapshotOf(bound)
			}
		}
	}
}
