package waiting

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

// Requests contains the requests that wait for another object. The key is the name of that object,
// with an empty namespace for a cluster-scoped object.
type Requests struct {
	mu       sync.Mutex
	byObject map[types.NamespacedName]sets.Set[templates.Request]
}

// NewRequests returns an empty record.
func NewRequests() *Requests {
	return &Requests{byObject: map[types.NamespacedName]sets.Set[templates.Request]{}}
}

// Add records that a request waits for an object.
func (b *Requests) Add(object types.NamespacedName, r templates.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byObject[object] == nil {
		b.byObject[object] = sets.New[templates.Request]()
	}
	b.byObject[object].Insert(r)
}

// Take removes and returns the requests that wait for the object.
func (b *Requests) Take(object types.NamespacedName) []templates.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.byObject[object].UnsortedList()
	delete(b.byObject, object)
	return taken
}

// DeleteTemplate removes the requests of a deleted template.
func (b *Requests) DeleteTemplate(r templates.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for object, requests := range b.byObject {
		for _, cause := range []policy.Trigger{policy.TemplateChanged, policy.PolicyChanged, policy.RulesChanged} {
			requests.Delete(r.Request(cause))
		}
		if requests.Len() == 0 {
			delete(b.byObject, object)
		}
	}
}
