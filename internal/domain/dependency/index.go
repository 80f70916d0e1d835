package dependency

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Index finds the dependents that refer to an object. A lookup takes time in proportion to the result
// and to the number of selectors for the object's kind and namespace. An Index is not safe for
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

// Put replaces the dependent's references and reports whether the new references contain a kind that
// was not in the index before. An empty list removes the dependent.
func (i *Index) Put(dependent types.NamespacedName, references []Reference) (hasNewKind bool) {
	for _, reference := range i.references[dependent] {
		i.remove(dependent, reference)
	}
	delete(i.references, dependent)
	before := sets.KeySet(i.kinds)
	for _, reference := range references {
		i.add(dependent, reference)
	}
	if len(references) > 0 {
		i.references[dependent] = slices.Clone(references)
	}
	return !before.IsSuperset(sets.KeySet(i.kinds))
}

func (i *Index) add(dependent types.NamespacedName, reference Reference) {
	entries, object := i.entriesFor(reference)
	if entries[object] == nil {
		entries[object] = sets.New[types.NamespacedName]()
	}
	entries[object].Insert(dependent)
	i.kinds[ReferencedKind(reference)]++
}

func (i *Index) remove(dependent types.NamespacedName, reference Reference) {
	entries, object := i.entriesFor(reference)
	entries[object].Delete(dependent)
	if entries[object].Len() == 0 {
		delete(entries, object)
	}
	kind := ReferencedKind(reference)
	if i.kinds[kind]--; i.kinds[kind] <= 0 {
		delete(i.kinds, kind)
	}
}

func (i *Index) entriesFor(reference Reference) (map[ObjectID]sets.Set[types.NamespacedName], ObjectID) {
	object := ObjectID{
		Kind: ReferencedKind(reference).GroupKind(),
		Key:  types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name},
	}
	if reference.Name == "" {
		return i.bySelector, object
	}
	return i.byName, object
}

// Kinds returns the kinds of all references, sorted.
func (i *Index) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(i.kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}

// Dependents returns the sorted dependents that refer to the object by name, or whose selectors match
// any of the label sets. If the object's labels have changed, callers pass the old and the new labels.
func (i *Index) Dependents(object ObjectID, labelSets ...map[string]string) []types.NamespacedName {
	found := sets.New[types.NamespacedName]()
	found = found.Union(i.byName[object])
	kindAndNamespace := object
	kindAndNamespace.Key.Name = ""
	for dependent := range i.bySelector[kindAndNamespace] {
		if slices.ContainsFunc(labelSets, func(each map[string]string) bool { return i.matchesAny(dependent, object, each) }) {
			found.Insert(dependent)
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

func (i *Index) matchesAny(dependent types.NamespacedName, object ObjectID, labels map[string]string) bool {
	return slices.ContainsFunc(i.references[dependent], func(reference Reference) bool { return Matches(reference, object, labels) })
}
