package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Index holds policies so that a template meets only those selectors that can
// select it: selectors are filed by kind, and within a kind by name, by one label
// that they require (once for each value that they take), or as a match for all.
// Label selectors are compiled once. The time of a match grows with the labels of
// the template and the selectors that share one of them, not with the number of
// policies; only selectors that require no label at all, such as "tier is not
// test", are gone through one by one.
//
// Index has no lock. Any number of readers may use it at a time, but callers
// keep Put and Delete apart from everything else. Policies handed to Put belong
// to the index until they are replaced: they must not be changed.
type Index struct {
	policies map[types.NamespacedName]Object
	slots    map[slot][]*entry
	// kinds are the policies by kind alone, sorted by name; see NearestMiss.
	kinds map[kindSlot][]Object
}

// slot is the place of a selector: the most selective facts about a template
// that it demands. Empty fields are not demanded. At most one of name and label
// is set.
type slot struct {
	policyNamespace  string
	apiVersion, kind string
	namespace, name  string
	label            demand
}

// entry is one selector of a policy, ranked for the case that it matches.
// labels is nil when the slot says all that the selector demands.
type entry struct {
	candidate
	labels labels.Selector
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		policies: make(map[types.NamespacedName]Object),
		slots:    make(map[slot][]*entry),
		kinds:    make(map[kindSlot][]Object),
	}
}

// Put adds a policy, or replaces the one of its namespace and name.
func (x *Index) Put(policy Object) {
	x.Delete(policy.GetNamespace(), policy.GetName())
	x.policies[keyOf(policy)] = policy
	x.putKinds(policy)
	for at, s := range entries(policy) {
		list := x.slots[at]
		i, _ := slices.BinarySearchFunc(list, s, compareEntries)
		x.slots[at] = slices.Insert(list, i, s)
	}
}

// Delete removes a policy; namespace is empty for a ClusterPropagationPolicy.
// Removing what is not there does nothing.
func (x *Index) Delete(namespace, name string) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	policy, ok := x.policies[key]
	if !ok {
		return
	}
	delete(x.policies, key)
	x.removeKinds(policy)
	for at, s := range entries(policy) {
		x.remove(at, s)
	}
}

func (x *Index) remove(at slot, s *entry) {
	list := x.slots[at]
	i, found := slices.BinarySearchFunc(list, s, compareEntries)
	if !found {
		return
	}
	list = slices.Delete(list, i, i+1)
	if len(list) == 0 {
		delete(x.slots, at)
		return
	}
	x.slots[at] = list
}

// Get returns the policy of that name, or nil; namespace is empty for a
// ClusterPropagationPolicy.
func (x *Index) Get(namespace, name string) Object {
	return x.policies[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Len returns the number of policies.
func (x *Index) Len() int { return len(x.policies) }

// Best answers as the function Best does for all policies of the index.
func (x *Index) Best(template *unstructured.Unstructured) Object {
	probe := newProbe(template)
	if probe.template.namespace != "" {
		if best := x.bestOf(probe, probe.template.namespace); best != nil {
			return best.policy
		}
	}
	if best := x.bestOf(probe, ""); best != nil {
		return best.policy
	}
	return nil
}

// bestOf asks one scope: the policies of one namespace, or the cluster's.
func (x *Index) bestOf(p probe, policyNamespace string) *entry {
	var best *entry
	for at := range p.slots(policyNamespace) {
		// A slot is sorted by rank, so its first match is its best.
		for _, s := range x.slots[at] {
			if best != nil && s.compare(&best.candidate) >= 0 {
				break
			}
			if s.matches(p.labels) {
				best = s
				break
			}
		}
	}
	return best
}

func (s *entry) matches(of labels.Set) bool {
	return !isTerminating(s.policy) && (s.labels == nil || s.labels.Matches(of))
}

// compareEntries orders by rank. Two selectors of one policy that rank the
// same are interchangeable within a slot only when they demand the same labels,
// so these come last in the order.
func compareEntries(a, b *entry) int {
	if order := a.compare(&b.candidate); order != 0 {
		return order
	}
	return compareLabels(a.labels, b.labels)
}

func keyOf(policy Object) types.NamespacedName {
	return types.NamespacedName{Namespace: policy.GetNamespace(), Name: policy.GetName()}
}

// entries yields each selector of the policy with every slot that it belongs to.
// Invalid label selectors select nothing and are left out.
func entries(policy Object) func(yield func(slot, *entry) bool) {
	return func(yield func(slot, *entry) bool) {
		for i := range policy.PropagationSpec().ResourceSelectors {
			at, of, s := newEntry(policy, &policy.PropagationSpec().ResourceSelectors[i])
			for _, at.label = range of {
				if !yield(at, s) {
					return
				}
			}
		}
	}
}

// newEntry returns a selector, where it belongs, and by which labels.
func newEntry(policy Object, selector *policyv1alpha1.ResourceSelector) (slot, []demand, *entry) {
	at := slot{
		policyNamespace: policy.GetNamespace(),
		apiVersion:      selector.APIVersion,
		kind:            selector.Kind,
		namespace:       selector.Namespace,
		name:            selector.Name,
	}
	switch {
	case selector.Name != "":
		return at, []demand{{}}, &entry{candidate: *newCandidate(policy, MatchName)}
	case selector.LabelSelector == nil:
		return at, []demand{{}}, &entry{candidate: *newCandidate(policy, MatchAll)}
	}
	compiled, ok := compileSelector(selector.LabelSelector)
	if !ok {
		return at, nil, nil
	}
	of, rest := demands(compiled)
	return at, of, &entry{candidate: *newCandidate(policy, MatchLabel), labels: rest}
}
