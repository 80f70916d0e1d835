package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Index finds the policies that may select a template without comparing all policies. Selectors are
// indexed by kind, and within a kind by name, by a label that they require (once for each accepted
// value), or as selectors of all objects. The duration of a lookup depends on the template's labels
// and the selectors that share one of them, not on the number of policies. Only selectors that require
// no label, such as "tier is not test", are compared one by one.
//
// Concurrent reads are safe, but callers must serialize Put and Delete with all other calls. Policies
// that are passed to Put must not be modified until they are replaced.
type Index struct {
	policies map[types.NamespacedName]Object
	entries  map[indexKey][]*entry
	// byKind holds the policies by kind only, sorted by name. NearestMiss uses it.
	byKind map[kindKey][]Object
}

// indexKey is a selector's key in the index: the most selective properties that the selector requires
// of a template. Empty fields are not required. At most one of name and labelRequirement is set.
type indexKey struct {
	policyNamespace  string
	apiVersion, kind string
	namespace, name  string
	labelRequirement labelRequirement
}

// entry is a policy's selector, with the policy's rank if the selector matches. labels is nil if the key
// contains all of the selector's requirements.
type entry struct {
	candidate
	labels labels.Selector
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		policies: make(map[types.NamespacedName]Object),
		entries:  make(map[indexKey][]*entry),
		byKind:   make(map[kindKey][]Object),
	}
}

// Put adds a policy, or replaces the policy with the same namespace and name.
func (x *Index) Put(policy Object) {
	x.Delete(policy.GetNamespace(), policy.GetName())
	x.policies[namespacedName(policy)] = policy
	x.addToKinds(policy)
	for key, added := range indexEntries(policy) {
		list := x.entries[key]
		i, _ := slices.BinarySearchFunc(list, added, compareEntries)
		x.entries[key] = slices.Insert(list, i, added)
	}
}

// Delete removes a policy. namespace is empty for a ClusterPropagationPolicy. Delete does nothing
// if the policy is not in the index.
func (x *Index) Delete(namespace, name string) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	policy, ok := x.policies[key]
	if !ok {
		return
	}
	delete(x.policies, key)
	x.removeFromKinds(policy)
	for entryKey, s := range indexEntries(policy) {
		x.remove(entryKey, s)
	}
}

func (x *Index) remove(key indexKey, s *entry) {
	list := x.entries[key]
	i, found := slices.BinarySearchFunc(list, s, compareEntries)
	if !found {
		return
	}
	list = slices.Delete(list, i, i+1)
	if len(list) == 0 {
		delete(x.entries, key)
		return
	}
	x.entries[key] = list
}

// Get returns the named policy, or nil. namespace is empty for a ClusterPropagationPolicy.
func (x *Index) Get(namespace, name string) Object {
	return x.policies[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Len returns the number of policies.
func (x *Index) Len() int { return len(x.policies) }

// Best returns the result of the function Best for all indexed policies.
func (x *Index) Best(template *unstructured.Unstructured) Object {
	probe := newTemplateProperties(template)
	if probe.key.namespace != "" {
		if best := x.bestInNamespace(probe, probe.key.namespace); best != nil {
			return best.policy
		}
	}
	if best := x.bestInNamespace(probe, ""); best != nil {
		return best.policy
	}
	return nil
}

// bestInNamespace returns the entry that takes precedence among the policies in the namespace, or among
// the ClusterPropagationPolicies if policyNamespace is empty.
func (x *Index) bestInNamespace(p templateProperties, policyNamespace string) *entry {
	var best *entry
	for key := range p.indexKeys(policyNamespace) {
		// The entries of a key are sorted by rank, so the first match is the best match.
		for _, s := range x.entries[key] {
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

func (e *entry) matches(of labels.Set) bool {
	return !isTerminating(e.policy) && (e.labels == nil || e.labels.Matches(of))
}

// compareEntries compares by rank, then by label selector. Selectors of the same policy can have the
// same rank and key, so the label selector is needed for remove to find the right entry.
func compareEntries(a, b *entry) int {
	if order := a.compare(&b.candidate); order != 0 {
		return order
	}
	return compareSelectors(a.labels, b.labels)
}

func namespacedName(policy Object) types.NamespacedName {
	return types.NamespacedName{Namespace: policy.GetNamespace(), Name: policy.GetName()}
}

// indexEntries yields each of the policy's selectors with all keys under which it is stored. Invalid
// label selectors are skipped, because they select nothing.
func indexEntries(policy Object) func(yield func(indexKey, *entry) bool) {
	return func(yield func(indexKey, *entry) bool) {
		for i := range policy.PropagationSpec().ResourceSelectors {
			key, required, s := newEntry(policy, &policy.PropagationSpec().ResourceSelectors[i])
			for _, key.labelRequirement = range required {
				if !yield(key, s) {
					return
				}
			}
		}
	}
}

// newEntry returns the selector's key without a label requirement, the label requirements with which to
// complete the key, and the entry.
func newEntry(policy Object, selector *policyv1alpha1.ResourceSelector) (indexKey, []labelRequirement, *entry) {
	key := indexKey{
		policyNamespace: policy.GetNamespace(),
		apiVersion:      selector.APIVersion,
		kind:            selector.Kind,
		namespace:       selector.Namespace,
		name:            selector.Name,
	}
	switch {
	case selector.Name != "":
		return key, []labelRequirement{{}}, &entry{candidate: *newCandidate(policy, MatchName)}
	case selector.LabelSelector == nil:
		return key, []labelRequirement{{}}, &entry{candidate: *newCandidate(policy, MatchAll)}
	}
	compiled, ok := compileSelector(selector.LabelSelector)
	if !ok {
		return key, nil, nil
	}
	required, rest := indexableRequirements(compiled)
	return key, required, &entry{candidate: *newCandidate(policy, MatchLabel), labels: rest}
}
