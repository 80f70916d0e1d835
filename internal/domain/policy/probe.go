package policy

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// probe holds what selectors ask of one template, read once for all of them.
type probe struct {
	template slot // apiVersion, kind, namespace and name
	labels   labels.Set
}

func newProbe(template *unstructured.Unstructured) probe {
	return probe{
		template: slot{
			apiVersion: template.GetAPIVersion(),
			kind:       template.GetKind(),
			namespace:  template.GetNamespace(),
			name:       template.GetName(),
		},
		labels: template.GetLabels(),
	}
}

// slots yields every slot whose demands the template meets, in one policy
// namespace: by name, by each label, and with no demand; each for selectors of
// the template's namespace and of all namespaces.
func (p probe) slots(policyNamespace string) func(yield func(slot) bool) {
	return func(yield func(slot) bool) {
		if p.slotsOf(policyNamespace, p.template.namespace, yield) && p.template.namespace != "" {
			p.slotsOf(policyNamespace, "", yield)
		}
	}
}

func (p probe) slotsOf(policyNamespace, namespace string, yield func(slot) bool) bool {
	at := p.template
	at.policyNamespace, at.namespace = policyNamespace, namespace
	if !yield(at) {
		return false
	}
	at.name = ""
	if !yield(at) {
		return false
	}
	for key, value := range p.labels {
		at.labelKey, at.labelValue = key, value
		if !yield(at) {
			return false
		}
	}
	return true
}

// splitSelector finds one label that the selector requires to have one value,
// the first by key, and returns it with what is left to check: the whole
// selector, or nil when that label is all that it asks.
func splitSelector(selector labels.Selector) (key, value string, rest labels.Selector) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return "", "", selector
	}
	for _, requirement := range requirements { // sorted by key
		one, isOne := onlyValue(requirement)
		if !isOne {
			continue
		}
		if len(requirements) == 1 {
			return requirement.Key(), one, nil
		}
		return requirement.Key(), one, selector
	}
	if len(requirements) == 0 {
		return "", "", nil
	}
	return "", "", selector
}

func onlyValue(requirement labels.Requirement) (string, bool) {
	switch requirement.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		values := requirement.ValuesUnsorted()
		if len(values) == 1 {
			return values[0], true
		}
	}
	return "", false
}

func compareLabels(a, b labels.Selector) int {
	return cmp.Compare(labelsText(a), labelsText(b))
}

func labelsText(selector labels.Selector) string {
	if selector == nil {
		return ""
	}
	return selector.String()
}
