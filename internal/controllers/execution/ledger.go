package execution

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

// objectKey names one manifest of one Work.
type objectKey struct {
	work   types.NamespacedName
	kind   schema.GroupVersionKind
	object types.NamespacedName
}

func keyOf(of *workv1alpha1.Work, manifest *unstructured.Unstructured) objectKey {
	return objectKey{
		work:   nameOf(of),
		kind:   manifest.GroupVersionKind(),
		object: types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()},
	}
}

// entry is what a member answered when a manifest was last applied.
type entry struct {
	manifest, observed uint64
}

// ledger remembers for every manifest what the member made of it. A member that
// defaults or changes fields that the manifest leaves out never shows the very
// manifest; without this memory every pass would write the same again.
//
// It may be lost: then an object is compared with its manifest once more.
type ledger struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]map[objectKey]entry
	// released are Works that were let go and that the cache may still show.
	released map[types.NamespacedName]types.UID
}

func newLedger() *ledger {
	return &ledger{
		entries:  map[types.NamespacedName]map[objectKey]entry{},
		released: map[types.NamespacedName]types.UID{},
	}
}

// remember notes that the manifest was applied and what the member holds now.
func (l *ledger) remember(key objectKey, manifest, observed *unstructured.Unstructured) {
	noted := entry{manifest: work.PrunedHash(manifest), observed: work.PrunedHash(observed)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries[key.work] == nil {
		l.entries[key.work] = map[objectKey]entry{}
	}
	l.entries[key.work][key] = noted
}

// holds tells whether this very manifest was applied and the member still holds
// what it held then.
func (l *ledger) holds(key objectKey, manifest, observed *unstructured.Unstructured) bool {
	l.mu.Lock()
	noted, ok := l.entries[key.work][key]
	l.mu.Unlock()
	return ok && noted.manifest == work.PrunedHash(manifest) && noted.observed == work.PrunedHash(observed)
}

// release notes that a Work was let go.
func (l *ledger) release(of *workv1alpha1.Work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, nameOf(of))
	l.released[nameOf(of)] = of.UID
}

// isReleased tells whether this very Work was let go already.
func (l *ledger) isReleased(of *workv1alpha1.Work) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.released[nameOf(of)] == of.UID
}

func nameOf(of *workv1alpha1.Work) types.NamespacedName {
	return types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
}

// forget drops what is remembered of a Work that is gone.
func (l *ledger) forget(of types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, of)
	delete(l.released, of)
}
