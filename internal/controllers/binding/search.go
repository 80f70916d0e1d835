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

// search finds the bindings that one selector of an override policy concerns.
type search struct {
	// key limits the bindings by templateField; empty does not.
	key string
	// selector is nil when the policy has none, and concerns all of them.
	selector *policyv1alpha1.ResourceSelector
}

// searches are what an override policy concerns: templates in its namespace, or
// everywhere when it is a ClusterOverridePolicy.
func searches(of override.Object) []search {
	selectors := of.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		if of.GetNamespace() == "" {
			return []search{{}}
		}
		return []search{{key: namespaceKey(of.GetNamespace())}}
	}
	var all []search
	for i := range selectors {
		selector := &selectors[i]
		namespace := of.GetNamespace()
		switch {
		case namespace == "":
			namespace = selector.Namespace
		case selector.Namespace != "" && selector.Namespace != namespace:
			// It can select nothing that the policy may change.
			continue
		}
		all = append(all, search{key: kindKey(namespace, selector.APIVersion, selector.Kind), selector: selector})
	}
	return all
}

func (s search) filter() client.ListOption {
	if s.key == "" {
		return nil
	}
	return client.MatchingFields{templateField: s.key}
}

// selects tells whether the search is for a template, of which kind and namespace
// are known to fit. The template itself is read only to compare labels; one that
// cannot be read is as good as selected, since a look too many does no harm.
func (s search) selects(ref workv1alpha2.ObjectReference, read func(workv1alpha2.ObjectReference) *unstructured.Unstructured) bool {
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

// labelled reads templates; nil when it cannot tell.
func (r *reconciler) labelled(ctx context.Context) func(workv1alpha2.ObjectReference) *unstructured.Unstructured {
	return func(ref workv1alpha2.ObjectReference) *unstructured.Unstructured {
		template, err := r.templates.Seen(ctx, kindOf(ref), keyOf(ref))
		if err != nil {
			return nil
		}
		return template
	}
}
