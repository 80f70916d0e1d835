package dependency

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Index returns the dependents that refer to an object. The time for a lookup is proportional to
// the result and to the number of selectors for the kind and namespace. An Index is not safe for
// concurrent use.
type Index struct {
	references map[types.NamespacedName][]Reference
	byName     map[ObjectID]sets.Set[types.NamespacedName]
	// The keys of bySelector have no name.
	bySelector map[ObjectID]sets.Set[types.NamespacedName]
	kinds      map[schema.GroupVersionKind]int
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		references: map[types.NamespacedName][]Reference{},
		byName:     map[ObjectID]sets.Set[types.NamespacedName]{},
		bySelector: map[ObjectID]sets.Set[types.NamespacedName]{},
		kinds:      map[schema.GroupVersionKind]int{},
	}
}

// Put replaces the references of a dependent and reports whether the new references contain a kind
// that was not in the index before. An empty list removes the dependent.
func (x *Index) Put(dependent types.NamespacedName, references []Reference) (hasNewKind bool) {
	for _, reference := range x.references[dependent] {
		x.remove(dependent, reference)
	}
	delete(x.references, dependent)
	before := sets.KeySet(x.kinds)
	for _, reference := range references {
		x.add(dependent, reference)
	}
	if len(references) > 0 {
		x.references[dependent] = slices.Clone(references)
	}
	return !before.IsSuperset(sets.KeySet(x.kinds))
}

func (x *Index) add(dependent types.NamespacedName, reference Reference) {
	entries, object := x.entriesFor(reference)
	if entries[object] == nil {
		entries[object] = sets.New[types.NamespacedName]()
	}
	entries[object].Insert(dependent)
	x.kinds[ReferencedKind(reference)]++
}

func (x *Index) remove(dependent types.NamespacedName, reference Reference) {
	entries, object := x.entriesFor(reference)
	entries[object].Delete(dependent)
	if entries[object].Len() == 0 {
		delete(entries, object)
	}
	kind := ReferencedKind(reference)
	if x.kinds[kind]--; x.kinds[kind] <= 0 {
		delete(x.kinds, kind)
	}
}

func (x *Index) entriesFor(reference Reference) (map[ObjectID]sets.Set[types.NamespacedName], ObjectID) {
	object := ObjectID{
		Kind: ReferencedKind(reference).GroupKind(),
		Key:  types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name},
	}
	if reference.Name == "" {
		return x.bySelector, object
	}
	return x.byName, object
}

// Kinds returns the kinds of all references, sorted.
func (x *Index) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(x.kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}

// Dependents returns the dependents that refer to an object by name or by one of the label sets,
// sorted. If the labels of the object changed, callers pass the old and the new labels.
func (x *Index) Dependents(thing ObjectID, labelSets ...map[string]string) []types.NamespacedName {
	found := sets.New[types.NamespacedName]()
	found = found.Union(x.byName[thing])
	kindAndNamespace := thing
	kindAndNamespace.Key.Name = ""
	for dependent := range x.bySelector[kindAndNamespace] {
		if slices.ContainsFunc(labelSets, func(each map[string]string) bool { return x.matchesAny(dependent, thing, each) }) {
			found.Insert(dependent)
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

func (x *Index) matchesAny(dependent types.NamespacedName, thing ObjectID, labels map[string]string) bool {
	return slices.ContainsFunc(x.references[dependent], func(reference Reference) bool { return Matches(reference, thing, labels) })
}
