package binding

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
)

// bindingSearch finds the bindings that one selector of an override policy may affect.
type bindingSearch struct {
	// key limits the bindings by templateField; empty selects all.
	key string
	// selector is nil when the policy has no selectors and affects all bindings.
	selector *policyv1alpha1.ResourceSelector
}

// searchesOf returns the searches for an override policy: templates in its namespace, or in
// all namespaces for a ClusterOverridePolicy.
func searchesOf(o override.Object) []bindingSearch {
	selectors := o.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		if o.GetNamespace() == "" {
			return []bindingSearch{{}}
		}
		return []bindingSearch{{key: namespaceKey(o.GetNamespace())}}
	}
	var all []bindingSearch
	for i := range selectors {
		selector := &selectors[i]
		namespace := o.GetNamespace()
		switch {
		case namespace == "":
			namespace = selector.Namespace
		case selector.Namespace != "" && selector.Namespace != namespace:
			// Such a selector selects nothing that the policy may change.
			continue
		}
		all = append(all, bindingSearch{key: kindKey(namespace, selector.APIVersion, selector.Kind), selector: selector})
	}
	return all
}

func (s bindingSearch) listOption() client.ListOption {
	if s.key == "" {
		return nil
	}
	return client.MatchingFields{templateField: s.key}
}

// selects reports whether the search selects a template whose kind and namespace match. The
// template is read only to compare labels. A template that cannot be read counts as selected,
// because a needless reconcile does no harm.
func (s bindingSearch) selects(ref workv1alpha2.ObjectReference, read func(workv1alpha2.ObjectReference) *unstructured.Unstructured) bool {
	if s.selector == nil {
		return true
	}
	if s.selector.Name != "" {
		return s.selector.Name == ref.Name
	}
	if s.selector.LabelSelector == nil {
		return true
	}
	template := read(ref)
	return template == nil ||
		policy.ImplicitPriority([]policyv1alpha1.ResourceSelector{*s.selector}, template) != policy.MatchNone
}

// templateLookup returns a function that reads templates; it returns nil on errors.
func (r *reconciler) templateLookup(ctx context.Context) func(workv1alpha2.ObjectReference) *unstructured.Unstructured {
	return func(ref workv1alpha2.ObjectReference) *unstructured.Unstructured {
		template, err := r.templateReader.GetCached(ctx, kindOf(ref), keyOf(ref))
		if err != nil {
			return nil
		}
		return template
	}
}
