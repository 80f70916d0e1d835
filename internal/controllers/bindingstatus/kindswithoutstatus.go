package bindingstatus

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// noStatusTTL is how long a kind is treated as having no status after the API server reported this.
// It is limited because a newer definition of the kind may add a status.
const noStatusTTL = 5 * time.Minute

// kindsWithoutStatus stores the kinds whose objects have no status subresource.
type kindsWithoutStatus struct {
	mu     sync.Mutex
	expiry map[schema.GroupVersionKind]time.Time
}

func newKindsWithoutStatus() *kindsWithoutStatus {
	return &kindsWithoutStatus{expiry: map[schema.GroupVersionKind]time.Time{}}
}

func (k *kindsWithoutStatus) add(kind schema.GroupVersionKind, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expiry[kind] = now.Add(noStatusTTL)
}

func (k *kindsWithoutStatus) has(kind schema.GroupVersionKind, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	expiry, known := k.expiry[kind]
	if known && now.Before(expiry) {
		return true
	}
	delete(k.expiry, kind)
	return false
}
