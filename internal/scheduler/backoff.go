package scheduler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/binding"
)

// request identifies a binding of either scope.
type request struct {
	namespaced bool
	types.NamespacedName
}

func requestOf(bound binding.Object) request {
	return request{
		namespaced:     binding.IsNamespaced(bound),
		NamespacedName: types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()},
	}
}

// String returns namespace/name, or the name alone for a ClusterResourceBinding.
func (r request) String() string {
	if r.namespaced {
		return r.NamespacedName.String()
	}
	return r.Name
}

// urgency orders bindings that have the same schedule priority.
type urgency int

const (
	// urgencyBackground is used for bindings that are listed at start or affected by a change of
	// a cluster.
	urgencyBackground urgency = -1
	// urgencyLive is used for bindings that were changed.
	urgencyLive urgency = 0
)

// priority returns the priority of a binding in the queue. It orders bindings by schedule priority
// first, and then by urgency.
func (s *scheduler) priority(bound binding.Object, u urgency) *int {
	place := int(u)
	if wanted := bound.BindingSpec().SchedulePriority; s.options.PriorityScheduling && wanted != nil {
		place += 2 * int(wanted.Priority)
	}
	return &place
}

// failureBackoff tracks the bindings whose last scheduling failed, and when each of them is
// retried.
type failureBackoff struct {
	baseDelay, maxDelay, capacityDelay time.Duration
	// usesCapacityDelay enables the separate delay for bindings that do not fit because clusters
	// lack capacity.
	usesCapacityDelay bool
	now               func() time.Time

	mu      sync.Mutex
	waiting map[request]backoffState
}

type backoffState struct {
	failures    int
	forCapacity bool
	until       time.Time
}

func newFailureBackoff(o Options) *failureBackoff {
	return &failureBackoff{
		baseDelay: o.BaseDelay, maxDelay: o.MaxDelay, capacityDelay: o.CapacityDelay, usesCapacityDelay: o.PriorityScheduling,
		now: time.Now, waiting: map[request]backoffState{},
	}
}

// recordFailure counts a failure and returns the delay before the retry. The delay starts at the
// base delay and doubles with every consecutive failure up to the maximum. If only capacity is
// missing, the delay is the capacity delay.
func (f *failureBackoff) recordFailure(r request, class retryMode) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.waiting[r]
	delay := f.baseDelay
	for range w.failures {
		if delay >= f.maxDelay {
			break
		}
		delay *= 2
	}
	delay = min(delay, f.maxDelay)
	w.failures++
	w.forCapacity = f.usesCapacityDelay && class == retryWhenCapacity
	if w.forCapacity {
		delay = f.capacityDelay
	}
	w.until = f.now().Add(delay)
	f.waiting[r] = w
	return delay
}

// reset removes the failures of a binding. It is called when the binding was scheduled, was
// changed, or needs no retry.
func (f *failureBackoff) reset(r request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.waiting, r)
}

// waitingForCapacity returns the bindings that wait for more capacity in clusters.
func (f *failureBackoff) waitingForCapacity() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	var requests []request
	for r, w := range f.waiting {
		if w.forCapacity {
			requests = append(requests, r)
		}
	}
	return requests
}

// count returns the number of bindings that wait now, either for capacity or after another failure.
func (f *failureBackoff) count(forCapacity bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, n := f.now(), 0
	for _, w := range f.waiting {
		if w.forCapacity == forCapacity && w.until.After(now) {
			n++
		}
	}
	return n
}
