package scheduler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"karmada.io/karmada/internal/domain/binding"
)

// assignmentTracker is the read-your-writes tracker of the scheduler. It holds the bindings that
// the scheduler wrote and that the cache does not show yet. Without it the scheduler would
// process each binding once more in the state before the write, and get a conflict.
type assignmentTracker struct {
	now func() time.Time

	mu     sync.Mutex
	writes map[request]writtenBinding
}

// writtenBinding is a binding as the API server returned it for a write.
type writtenBinding struct {
	binding.Object
	writtenAt time.Time
}

// maxWatchDelay is the maximum time until a watch shows a write. After that time the written
// state is considered lost, for example after the restore of a backup.
const maxWatchDelay = time.Minute

func newAssignmentTracker() *assignmentTracker {
	return &assignmentTracker{now: time.Now, writes: map[request]writtenBinding{}}
}

// recordWrite stores the response of the API server to a write. The object must not be modified
// afterwards.
func (n *assignmentTracker) recordWrite(r request, answered binding.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writes[r] = writtenBinding{answered, n.now()}
}

// lookup returns the last write unless it is too old. The caller holds n.mu.
func (n *assignmentTracker) lookup(r request) (binding.Object, bool) {
	known, ok := n.writes[r]
	if ok && n.now().Sub(known.writtenAt) >= maxWatchDelay {
		delete(n.writes, r)
		return nil, false
	}
	return known.Object, ok
}

// newest returns the newer of the observed and the written binding.
func (n *assignmentTracker) newest(r request, observed binding.Object) binding.Object {
	n.mu.Lock()
	defer n.mu.Unlock()
	if written, ok := n.lookup(r); ok && compareVersions(observed, written) < 0 {
		return written
	}
	return observed
}

// isOwnWrite reports whether the observed state is the last write of the scheduler or an earlier
// state, so there is nothing to process. It removes the write once the observed state is not
// older.
func (n *assignmentTracker) isOwnWrite(r request, observed binding.Object) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	written, ok := n.lookup(r)
	if !ok {
		return false
	}
	order := compareVersions(observed, written)
	if order >= 0 {
		delete(n.writes, r)
	}
	return order <= 0
}

func (n *assignmentTracker) remove(r request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.writes, r)
}

// compareVersions orders two states of a binding by age. States that cannot be compared count as
// newer: another object with the same name, or versions in an unknown format.
func compareVersions(observed, written binding.Object) int {
	if observed.GetUID() != written.GetUID() {
		return 1
	}
	order, err := resourceversion.CompareResourceVersion(observed.GetResourceVersion(), written.GetResourceVersion())
	if err != nil {
		return 1
	}
	return order
}
