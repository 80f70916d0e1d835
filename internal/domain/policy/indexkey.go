package policy

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// templateProperties holds the template's properties that selectors compare.
type templateProperties struct {
	key    indexKey // apiVersion, kind, namespace and name
	labels labels.Set
}

func newTemplateProperties(template *unstructured.Unstructured) templateProperties {
	return templateProperties{
		key: indexKey{
			apiVersion: template.GetAPIVersion(),
			kind:       template.GetKind(),
			namespace:  template.GetNamespace(),
			name:       template.GetName(),
		},
		labels: template.GetLabels(),
	}
}

// indexKeys yields every index key that matches the template in the policy namespace: the key of its
// name, the keys of its labels, and the key of selectors that select all objects. It yields each of
// these keys for selectors of the template's namespace, and for selectors of all namespaces.
func (t templateProperties) indexKeys(policyNamespace string) func(yield func(indexKey) bool) {
	return func(yield func(indexKey) bool) {
		if t.indexKeysForNamespace(policyNamespace, t.key.namespace, yield) && t.key.namespace != "" {
			t.indexKeysForNamespace(policyNamespace, "", yield)
		}
	}
}

func (t templateProperties) indexKeysForNamespace(policyNamespace, namespace string, yield func(indexKey) bool) bool {
	key := t.key
	key.policyNamespace, key.namespace = policyNamespace, namespace
	if !yield(key) {
		return false
	}
	key.name = ""
	if !yield(key) {
		return false
	}
	for label, value := range t.labels {
		key.labelRequirement = labelRequirement{key: label, value: value}
		if !yield(key) {
			return false
		}
		key.labelRequirement = labelRequirement{key: label, anyValue: true}
		if !yield(key) {
			return false
		}
	}
	return true
}

// labelRequirement is a selector's requirement on a label: a value, or any value. The zero value
// requires nothing.
type labelRequirement struct {
	key, value string
	anyValue   bool
}

// indexableRequirements chooses a requirement of the selector that only templates with certain labels
// can meet, and returns these labels. It prefers requirements with few values, because fewer templates
// match them. rest is the selector that must still be compared, or nil if the returned labels are
// equivalent to the whole selector.
func indexableRequirements(selector labels.Selector) (required []labelRequirement, rest labels.Selector) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return []labelRequirement{{}}, selector
	}
	if len(requirements) == 0 {
		return []labelRequirement{{}}, nil
	}
	required, complete := []labelRequirement{{}}, false
	for i := range requirements { // sorted by key
		accepted, isComplete := acceptedLabels(&requirements[i])
		if accepted == nil {
			continue
		}
		isFirst := required[0] == labelRequirement{}
		isNarrower := !accepted[0].anyValue && (required[0].anyValue || len(accepted) < len(required))
		if isFirst || isNarrower {
			required, complete = accepted, isComplete
		}
	}
	if complete && len(requirements) == 1 {
		return required, nil
	}
	return required, selector
}

// acceptedLabels returns the labels that meet the requirement, or nil if a template without the label
// can meet it. complete reports whether the result is equivalent to the requirement.
func acceptedLabels(requirement *labels.Requirement) (accepted []labelRequirement, complete bool) {
	switch requirement.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		for _, value := range requirement.ValuesUnsorted() {
			accepted = append(accepted, labelRequirement{key: requirement.Key(), value: value})
		}
		return accepted, true
	case selection.Exists:
		return []labelRequirement{{key: requirement.Key(), anyValue: true}}, true
	case selection.GreaterThan, selection.LessThan:
		return []labelRequirement{{key: requirement.Key(), anyValue: true}}, false
	}
	return nil, false
}

func compareSelectors(a, b labels.Selector) int {
	return cmp.Compare(selectorText(a), selectorText(b))
}

func selectorText(selector labels.Selector) string {
	if selector == nil {
		return ""
	}
	return selector.String()
}
