package dependency

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Index finds the dependents that point to an object. What a look-up costs grows
// with what it finds and with the selectors of that kind and namespace. It is not
// safe for concurrent use.
type Index struct {
	references map[types.NamespacedName][]Reference
	named      map[Thing]sets.Set[types.NamespacedName]
	// selecting is by Thing without a name.
	selecting map[Thing]sets.Set[types.NamespacedName]
	kinds     map[schema.GroupVersionKind]int
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		references: map[types.NamespacedName][]Reference{},
		named:      map[Thing]sets.Set[types.NamespacedName]{},
		selecting:  map[Thing]sets.Set[types.NamespacedName]{},
		kinds:      map[schema.GroupVersionKind]int{},
	}
}

// Put replaces the references of a dependent and reports whether a kind occurs
// now that did not before. No references forget the dependent.
func (x *Index) Put(dependent types.NamespacedName, references []Reference) (appeared bool) {
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
	entries, at := x.entries(reference)
	if entries[at] == nil {
		entries[at] = sets.New[types.NamespacedName]()
	}
	entries[at].Insert(dependent)
	x.kinds[KindOf(reference)]++
}

func (x *Index) remove(dependent types.NamespacedName, reference Reference) {
	entries, at := x.entries(reference)
	entries[at].Delete(dependent)
	if entries[at].Len() == 0 {
		delete(entries, at)
	}
	kind := KindOf(reference)
	if x.kinds[kind]--; x.kinds[kind] <= 0 {
		delete(x.kinds, kind)
	}
}

func (x *Index) entries(reference Reference) (map[Thing]sets.Set[types.NamespacedName], Thing) {
	at := Thing{
		Kind: KindOf(reference).GroupKind(),
		Key:  types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name},
	}
	if reference.Name == "" {
		return x.selecting, at
	}
	return x.named, at
}

// Kinds are the kinds that occur in references.
func (x *Index) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(x.kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}

// Dependents are those that point to an object by name, or by any of the sets of
// labels: an object that changed its labels concerns those too that selected it
// before. They are sorted.
func (x *Index) Dependents(thing Thing, marks ...map[string]string) []types.NamespacedName {
	found := sets.New[types.NamespacedName]()
	found = found.Union(x.named[thing])
	place := thing
	place.Key.Name = ""
	for dependent := range x.selecting[place] {
		if slices.ContainsFunc(marks, func(each map[string]string) bool { return x.points(dependent, thing, each) }) {
			found.Insert(dependent)
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

func (x *Index) points(dependent types.NamespacedName, thing Thing, marks map[string]string) bool {
	return slices.ContainsFunc(x.references[dependent], func(reference Reference) bool { return Matches(reference, thing, marks) })
}
