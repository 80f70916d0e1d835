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

// urgency orders bindings with the same priority.
type urgency int

const (
	// urgencyBackground is used for bindings that are listed at start or affected by a change of
	// a cluster.
	urgencyBackground urgency = -1
	// urgencyLive is used for bindings that changed themselves.
	urgencyLive urgency = 0
)

// priority returns the priority of a binding in the queue. A higher schedule priority takes
// precedence, then the urgency.
func (s *scheduler) priority(bound binding.Object, u urgency) *int {
	place := int(u)
	if wanted := bound.BindingSpec().SchedulePriority; s.options.PriorityScheduling && wanted != nil {
		place += 2 * int(wanted.Priority)
	}
	return &place
}

// failureBackoff tracks the bindings whose last scheduling failed, and until when they wait.
type failureBackoff struct {
	baseDelay, maxDelay, capacityDelay time.Duration
	// usesCapacityDelay enables the separate delay for bindings without capacity.
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

// recordFailure counts a failure and returns the delay: the base delay, doubled with every
// consecutive failure up to the maximum, or the capacity delay if only capacity is missing.
func (b *failureBackoff) recordFailure(r request, class retryMode) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waiting[r]
	delay := b.baseDelay
	for range w.failures {
		if delay >= b.maxDelay {
			break
		}
		delay *= 2
	}
	delay = min(delay, b.maxDelay)
	w.failures++
	w.forCapacity = b.usesCapacityDelay && class == retryWhenCapacity
	if w.forCapacity {
		delay = b.capacityDelay
	}
	w.until = b.now().Add(delay)
	b.waiting[r] = w
	return delay
}

// reset removes the failures of a binding that succeeded or changed.
func (b *failureBackoff) reset(r request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, r)
}

// waitingForCapacity returns the bindings that wait for more capacity in clusters.
func (b *failureBackoff) waitingForCapacity() []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	var requests []request
	for r, w := range b.waiting {
		if w.forCapacity {
			requests = append(requests, r)
		}
	}
	return requests
}

// count returns how many bindings wait now.
func (b *failureBackoff) count(forCapacity bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, n := b.now(), 0
	for _, w := range b.waiting {
		if w.forCapacity == forCapacity && w.until.After(now) {
			n++
		}
	}
	return n
}
