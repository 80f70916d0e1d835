package scheduler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"karmada.io/karmada/internal/domain/binding"
)

// recent holds what the scheduler has written and not yet seen again. Without it
// every write would be looked at once more in the state before the write, and end
// in a conflict.
type recent struct {
	now func() time.Time

	mu      sync.Mutex
	written map[request]answer
}

// answer is a binding as the API server answered to a write.
type answer struct {
	binding.Object
	at time.Time
}

// recentFor is how long a watch may take to show a write. What it does not show by then
// is no state of the binding any more, as after the restore of a backup.
const recentFor = time.Minute

func newRecent() *recent { return &recent{now: time.Now, written: map[request]answer{}} }

// remember keeps what the API server answered to a write. It is not to be changed
// afterwards.
func (n *recent) remember(r request, answered binding.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written[r] = answer{answered, n.now()}
}

// of is what was written lately; n.mu is held.
func (n *recent) of(r request) (binding.Object, bool) {
	known, ok := n.written[r]
	if ok && n.now().Sub(known.at) >= recentFor {
		delete(n.written, r)
		return nil, false
	}
	return known.Object, ok
}

// latest returns the newer one of what was observed and what was written.
func (n *recent) latest(r request, observed binding.Object) binding.Object {
	n.mu.Lock()
	defer n.mu.Unlock()
	if written, ok := n.of(r); ok && compare(observed, written) < 0 {
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
	written, ok := n.of(r)
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
