package detector

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/policy"
)

// blocked holds the passes that cannot go on before something happens to another
// object. The namespace of one without is empty.
type blocked struct {
	mu       sync.Mutex
	requests map[types.NamespacedName]sets.Set[request]
}

func newBlocked() *blocked {
	return &blocked{requests: map[types.NamespacedName]sets.Set[request]{}}
}

func (b *blocked) add(object types.NamespacedName, r request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.requests[object] == nil {
		b.requests[object] = sets.New[request]()
	}
	b.requests[object].Insert(r)
}

// take returns what waited for the object, and forgets it.
func (b *blocked) take(object types.NamespacedName) []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.requests[object].UnsortedList()
	delete(b.requests, object)
	return taken
}

// forget drops the passes of a template that is gone.
func (b *blocked) forget(r reference) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for object, requests := range b.requests {
		requests.Delete(request{r, policy.TemplateChanged}, request{r, policy.PolicyChanged})
		if requests.Len() == 0 {
			delete(b.requests, object)
		}
	}
}
