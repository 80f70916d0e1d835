package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// MatchPriority is a policy's implicit priority for a template. A more specific selector has a higher
// priority.
type MatchPriority int

// The implicit priorities, in ascending order.
const (
	MatchNone  MatchPriority = iota // not selected
	MatchAll                        // by kind (and namespace) only
	MatchLabel                      // by a label selector, even an empty one
	MatchName                       // by name
)

// ImplicitPriority returns the highest priority of the selectors that select the template, or MatchNone.
func ImplicitPriority(selectors []policyv1alpha1.ResourceSelector, template *unstructured.Unstructured) MatchPriority {
	best := MatchNone
	for i := range selectors {
		best = max(best, matchSelector(&selectors[i], template))
	}
	return best
}

// Selects reports whether any selector of the policy selects the template.
func Selects(policy Object, template *unstructured.Unstructured) bool {
	return ImplicitPriority(policy.PropagationSpec().ResourceSelectors, template) != MatchNone
}

// matchSelector returns how specifically the selector selects the template. API versions must be equal,
// because templates are read only in the preferred version of their kind.
func matchSelector(selector *policyv1alpha1.ResourceSelector, template *unstructured.Unstructured) MatchPriority {
	if selector.APIVersion != template.GetAPIVersion() || selector.Kind != template.GetKind() {
		return MatchNone
	}
	if selector.Namespace != "" && selector.Namespace != template.GetNamespace() {
		return MatchNone
	}
	if selector.Name != "" {
		if selector.Name == template.GetName() {
			return MatchName
		}
		return MatchNone
	}
	if selector.LabelSelector == nil {
		return MatchAll
	}
	compiled, ok := compileSelector(selector.LabelSelector)
	if ok && compiled.Matches(labels.Set(template.GetLabels())) {
		return MatchLabel
	}
	return MatchNone
}

// compileSelector compiles the label selector. It returns false if the selector is invalid. Such a
// selector selects nothing, so that it does not claim objects by mistake.
func compileSelector(selector *metav1.LabelSelector) (labels.Selector, bool) {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return compiled, err == nil
}
