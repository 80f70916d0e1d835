package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Filter describes the templates that one selector of a policy selects. An empty namespace, an
// empty name and nil labels select all templates.
type Filter struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	Labels          labels.Selector
}

// FiltersOf returns the filters of the selectors of a policy, in their order. A PropagationPolicy
// selects only in its own namespace. If a selector can select nothing, because it is invalid or
// names another namespace, the result contains no filter for it.
func FiltersOf(policy Object) []Filter {
	var filters []Filter
	for i := range policy.PropagationSpec().ResourceSelectors {
		if filter, ok := FilterOf(policy, &policy.PropagationSpec().ResourceSelectors[i]); ok {
			filters = append(filters, filter)
		}
	}
	return filters
}

// FilterOf returns the filter of one selector of a policy, and false if the selector can
// select nothing.
func FilterOf(policy Object, selector *policyv1alpha1.ResourceSelector) (Filter, bool) {
	namespace := selector.Namespace
	if !IsCluster(policy) {
		if namespace != "" && namespace != policy.GetNamespace() {
			return Filter{}, false
		}
		namespace = policy.GetNamespace()
	}
	filter := Filter{
		Kind:      schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind),
		Namespace: namespace, Name: selector.Name,
	}
	if selector.Name == "" && selector.LabelSelector != nil {
		compiled, err := metav1.LabelSelectorAsSelector(selector.LabelSelector)
		if err != nil {
			return Filter{}, false
		}
		filter.Labels = compiled
	}
	return filter, true
}
