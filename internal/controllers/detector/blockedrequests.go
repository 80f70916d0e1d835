package detector

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/policy"
)

// blockedRequests holds the requests that wait for another object, by the name of that object.
// The namespace of a cluster-scoped object is empty.
type blockedRequests struct {
	mu       sync.Mutex
	byObject map[types.NamespacedName]sets.Set[templateRequest]
}

func newBlockedRequests() *blockedRequests {
	return &blockedRequests{byObject: map[types.NamespacedName]sets.Set[templateRequest]{}}
}

func (b *blockedRequests) add(object types.NamespacedName, r templateRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byObject[object] == nil {
		b.byObject[object] = sets.New[templateRequest]()
	}
	b.byObject[object].Insert(r)
}

// take returns the requests that wait for the object and removes them.
func (b *blockedRequests) take(object types.NamespacedName) []templateRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.byObject[object].UnsortedList()
	delete(b.byObject, object)
	return taken
}

// deleteTemplate removes the requests of a deleted template.
func (b *blockedRequests) deleteTemplate(r templateRef) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for object, requests := range b.byObject {
		requests.Delete(templateRequest{r, policy.TemplateChanged}, templateRequest{r, policy.PolicyChanged})
		if requests.Len() == 0 {
			delete(b.byObject, object)
		}
	}
}
