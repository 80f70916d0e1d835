package interpreters

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/interpreter"
)

// WorkIndex records which Works contain objects of a kind. A controller adds a Work before it reads
// the rules of the kind, so that a change of these rules finds the Work even if the pass for the
// Work still runs. An index of the cache is not used, because it would decode the manifests of each
// Work whenever the status of the Work changes. The zero value is empty.
type WorkIndex struct {
	mu     sync.Mutex
	byKind map[schema.GroupVersionKind]sets.Set[types.NamespacedName]
}

// Add records that a Work contains an object of the kind.
func (w *WorkIndex) Add(work types.NamespacedName, kind schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKind == nil {
		w.byKind = map[schema.GroupVersionKind]sets.Set[types.NamespacedName]{}
	}
	if w.byKind[kind] == nil {
		w.byKind[kind] = sets.New[types.NamespacedName]()
	}
	w.byKind[kind].Insert(work)
}

// Delete removes a Work that no longer exists.
func (w *WorkIndex) Delete(work types.NamespacedName) {
	w.deleteFrom(func(works sets.Set[types.NamespacedName]) { works.Delete(work) })
}

// DeleteNamespace removes the Works of a namespace from the index in memory. It is called for the
// execution namespace of a cluster that this process no longer serves.
func (w *WorkIndex) DeleteNamespace(namespace string) {
	w.deleteFrom(func(works sets.Set[types.NamespacedName]) {
		maps.DeleteFunc(works, func(work types.NamespacedName, _ sets.Empty) bool { return work.Namespace == namespace })
	})
}

func (w *WorkIndex) deleteFrom(remove func(sets.Set[types.NamespacedName])) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, works := range w.byKind {
		if remove(works); works.Len() == 0 {
			delete(w.byKind, kind)
		}
	}
}

// Works returns the Works with objects of any of the kinds, without duplicates and in any order.
func (w *WorkIndex) Works(kinds interpreter.Kinds) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := sets.New[types.NamespacedName]()
	for kind, works := range w.byKind {
		if !kinds.Has(kind) {
			continue
		}
		for work := range works {
			found.Insert(work)
		}
	}
	return found.UnsortedList()
}
