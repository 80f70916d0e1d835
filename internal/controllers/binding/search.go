package binding

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// bindingSearch finds the bindings that one resource selector of an override policy may affect.
type bindingSearch struct {
	// key selects the bindings with this key of loop.BindingsByTemplate. An empty key selects all
	// bindings.
	key string
	// selector is nil if the policy has no selectors, so that it affects all bindings.
	selector *policyv1alpha1.ResourceSelector
}

// searchesOf returns the searches for an override policy. They cover the templates in the namespace
// of the policy, or in all namespaces for a ClusterOverridePolicy.
func searchesOf(o override.Object) []bindingSearch {
	selectors := o.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		if o.GetNamespace() == "" {
			return []bindingSearch{{}}
		}
		return []bindingSearch{{key: loop.TemplateNamespaceKey(o.GetNamespace())}}
	}
	var all []bindingSearch
	for i := range selectors {
		selector := &selectors[i]
		namespace := o.GetNamespace()
		switch {
		case namespace == "":
			namespace = selector.Namespace
		case selector.Namespace != "" && selector.Namespace != namespace:
			// This selector selects only objects in other namespaces, which the policy may not
			// change.
			continue
		}
		all = append(all, bindingSearch{key: loop.TemplateKindKey(namespace, selector.APIVersion, selector.Kind), selector: selector})
	}
	return all
}

func (b bindingSearch) listOptions() []client.ListOption {
	if b.key == "" {
		return nil
	}
	return []client.ListOption{loop.BindingsByTemplate.Matching(b.key)}
}

// selects reports whether the search selects a template whose kind and namespace already match. It
// reads the template only if it must compare labels. If read returns nil, the template counts as
// selected, because an unneeded reconcile does no harm.
func (b bindingSearch) selects(ref workv1alpha2.ObjectReference, read func(workv1alpha2.ObjectReference) *unstructured.Unstructured) bool {
	if b.selector == nil {
		return true
	}
	if b.selector.Name != "" {
		return b.selector.Name == ref.Name
	}
	if b.selector.LabelSelector == nil {
		return true
	}
	template := read(ref)
	return template == nil ||
		policy.ImplicitPriority([]policyv1alpha1.ResourceSelector{*b.selector}, template) != policy.MatchNone
}
