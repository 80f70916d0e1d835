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
// namespace: by name, by each label and its value, and with no demand; each for
// selectors of the template's namespace and of all namespaces.
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
		at.label = demand{key: key, value: value}
		if !yield(at) {
			return false
		}
		at.label = demand{key: key, any: true}
		if !yield(at) {
			return false
		}
	}
	return true
}

// demand is what a selector asks of one label: a value, or any; the zero value
// asks nothing.
type demand struct {
	key, value string
	any        bool
}

// demands takes out of a selector one requirement that a template can only meet
// by a label that it has, and returns what that label may be, with what is left
// to check: the whole selector, or nil when that is all that it asks. One of few
// values is preferred, for it leaves the fewest templates to look at.
func demands(selector labels.Selector) (of []demand, rest labels.Selector) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return []demand{{}}, selector
	}
	if len(requirements) == 0 {
		return []demand{{}}, nil
	}
	of, decisive := []demand{{}}, false
	for i := range requirements { // sorted by key
		asked, all := demandsOf(&requirements[i])
		if asked != nil && (of[0] == demand{} || of[0].any && !asked[0].any || !asked[0].any && len(asked) < len(of)) {
			of, decisive = asked, all
		}
	}
	if decisive && len(requirements) == 1 {
		return of, nil
	}
	return of, selector
}

// demandsOf returns nil for a requirement that a template without the label can
// meet. all says that the demands are the whole requirement.
func demandsOf(requirement *labels.Requirement) (of []demand, all bool) {
	switch requirement.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		for _, value := range requirement.ValuesUnsorted() {
			of = append(of, demand{key: requirement.Key(), value: value})
		}
		return of, true
	case selection.Exists:
		return []demand{{key: requirement.Key(), any: true}}, true
	case selection.GreaterThan, selection.LessThan:
		return []demand{{key: requirement.Key(), any: true}}, false
	}
	return nil, false
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
