package detector

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// blocked holds the passes that cannot go on before an override policy exists.
// The namespace of a ClusterOverridePolicy is empty.
type blocked struct {
	mu       sync.Mutex
	requests map[types.NamespacedName]sets.Set[request]
}

func newBlocked() *blocked {
	return &blocked{requests: map[types.NamespacedName]sets.Set[request]{}}
}

func (b *blocked) add(override types.NamespacedName, r request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.requests[override] == nil {
		b.requests[override] = sets.New[request]()
	}
	b.requests[override].Insert(r)
}

// take returns what waited for the override, and forgets it.
func (b *blocked) take(override types.NamespacedName) []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.requests[override].UnsortedList()
	delete(b.requests, override)
	return taken
}
