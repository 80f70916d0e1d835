package scheduler

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"karmada.io/karmada/internal/domain/binding"
)

// recent holds what the scheduler has written and not yet seen again. Without it
// every write would be looked at once more in the state before the write, and end
// in a conflict.
type recent struct {
	mu      sync.Mutex
	written map[request]binding.Object
}

func newRecent() *recent { return &recent{written: map[request]binding.Object{}} }

// remember keeps what the API server answered to a write. It is not to be changed
// afterwards.
func (n *recent) remember(r request, written binding.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written[r] = written
}

// latest returns the newer one of what was observed and what was written.
func (n *recent) latest(r request, observed binding.Object) binding.Object {
	n.mu.Lock()
	defer n.mu.Unlock()
	if written, ok := n.written[r]; ok && compare(observed, written) < 0 {
		return written
	}
	return observed
}

// known reports whether an observed state is one that the scheduler has written,
// or one before that: there is nothing new to see. What has caught up with the
// write is forgotten.
func (n *recent) known(r request, observed binding.Object) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	written, ok := n.written[r]
	if !ok {
		return false
	}
	order := compare(observed, written)
	if order >= 0 {
		delete(n.written, r)
	}
	return order <= 0
}

func (n *recent) forget(r request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.written, r)
}

// compare orders two states of a binding by age. What cannot be compared counts as
// news: another object of the same name, or versions of an unknown form.
func compare(observed, written binding.Object) int {
	if observed.GetUID() != written.GetUID() {
		return 1
	}
	order, err := resourceversion.CompareResourceVersion(observed.GetResourceVersion(), written.GetResourceVersion())
	if err != nil {
		return 1
	}
	return order
}
