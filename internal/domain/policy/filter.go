package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Filter describes the templates that a policy's selector selects. An empty namespace, an empty name
// and nil labels do not restrict the templates.
type Filter struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	Labels          labels.Selector
}

// FiltersOf returns the filters of the policy's selectors, in their order. It leaves out selectors that
// cannot select anything, because they are invalid or name another namespace than the
// PropagationPolicy's own.
func FiltersOf(policy Object) []Filter {
	var filters []Filter
	for i := range policy.PropagationSpec().ResourceSelectors {
		if filter, ok := FilterOf(policy, &policy.PropagationSpec().ResourceSelectors[i]); ok {
			filters = append(filters, filter)
		}
	}
	return filters
}

// FilterOf returns the filter of the policy's selector, or false if the selector cannot select
// anything.
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
