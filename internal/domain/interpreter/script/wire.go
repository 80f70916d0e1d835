package script

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// itemsOf returns the items as scripts see them: with the names of the fields in JSON, and without
// empty fields. The result is nil if items is nil.
func itemsOf(items []workv1alpha2.AggregatedStatusItem) ([]any, error) {
	if items == nil {
		return nil, nil
	}
	list := make([]any, 0, len(items))
	for i := range items {
		item := &items[i]
		fields := map[string]any{"clusterName": item.ClusterName}
		if item.Status != nil && len(item.Status.Raw) > 0 {
			var status any
			if err := utiljson.Unmarshal(item.Status.Raw, &status); err != nil {
				return nil, fmt.Errorf("reading the status of cluster %s: %w", item.ClusterName, err)
			}
			fields["status"] = status
		}
		if item.Applied {
			fields["applied"] = true
		}
		if item.AppliedMessage != "" {
			fields["appliedMessage"] = item.AppliedMessage
		}
		if item.Health != "" {
			fields["health"] = string(item.Health)
		}
		list = append(list, fields)
	}
	return list, nil
}

// sortedDependencies sorts references and removes duplicates.
func sortedDependencies(all []configv1alpha1.DependentObjectReference) ([]configv1alpha1.DependentObjectReference, error) {
	type keyed struct {
		reference configv1alpha1.DependentObjectReference
		selector  string
	}
	list := make([]keyed, 0, len(all))
	for _, reference := range all {
		selector, err := json.Marshal(reference.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("encoding the label selector of a dependency: %w", err)
		}
		list = append(list, keyed{reference: reference, selector: string(selector)})
	}
	compare := func(a, b keyed) int {
		return cmp.Or(
			strings.Compare(a.reference.APIVersion, b.reference.APIVersion),
			strings.Compare(a.reference.Kind, b.reference.Kind),
			strings.Compare(a.reference.Namespace, b.reference.Namespace),
			strings.Compare(a.reference.Name, b.reference.Name),
			strings.Compare(a.selector, b.selector),
		)
	}
	slices.SortFunc(list, compare)
	list = slices.CompactFunc(list, func(a, b keyed) bool { return compare(a, b) == 0 })
	sorted := make([]configv1alpha1.DependentObjectReference, 0, len(list))
	for _, entry := range list {
		sorted = append(sorted, entry.reference)
	}
	return sorted, nil
}
