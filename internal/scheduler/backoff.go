package scheduler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/binding"
)

// request identifies a ResourceBinding or a ClusterResourceBinding.
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

// urgency orders bindings with the same schedule priority.
type urgency int

const (
	// urgencyBackground applies to bindings that are listed at start or affected by a changed cluster.
	urgencyBackground urgency = -1
	// urgencyLive applies to changed bindings.
	urgencyLive urgency = 0
)

// priority returns the binding's priority in the queue, which depends first on its schedule priority
// and then on its urgency.
func (s *scheduler) priority(bound binding.Object, u urgency) *int {
	place := int(u)
	if wanted := bound.BindingSpec().SchedulePriority; s.options.PriorityScheduling && wanted != nil {
		place += 2 * int(wanted.Priority)
	}
	return &place
}

// failureBackoff tracks the bindings that could not be scheduled, and when each of them is retried.
type failureBackoff struct {
	baseDelay, maxDelay, capacityDelay time.Duration
	// usesCapacityDelay enables capacityDelay for bindings that lack capacity.
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

// recordFailure counts a failure and returns the delay before the retry. The delay starts at baseDelay
// and doubles with every consecutive failure, up to maxDelay. For retryWhenCapacity, it is
// capacityDelay if usesCapacityDelay is set.
func (f *failureBackoff) recordFailure(r request, mode retryMode) time.Duration {
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
	w.forCapacity = f.usesCapacityDelay && mode == retryWhenCapacity
	if w.forCapacity {
		delay = f.capacityDelay
	}
	w.until = f.now().Add(delay)
	f.waiting[r] = w
	return delay
}

// reset clears the binding's failures, after it was scheduled or has changed, or if it needs no retry.
func (f *failureBackoff) reset(r request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.waiting, r)
}

// waitingForCapacity returns the bindings that wait until a cluster has more capacity.
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

// count returns the number of waiting bindings: those that wait for capacity, or those that wait after
// another failure.
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
