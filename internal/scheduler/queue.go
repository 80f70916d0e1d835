package scheduler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/binding"
)

// request names a binding of either scope.
type request struct {
	namespaced bool
	types.NamespacedName
}

func requestOf(of binding.Object) request {
	return request{
		namespaced:     binding.Namespaced(of),
		NamespacedName: types.NamespacedName{Namespace: of.GetNamespace(), Name: of.GetName()},
	}
}

// String is namespace/name, or the name alone of a ClusterResourceBinding.
func (r request) String() string {
	if r.namespaced {
		return r.NamespacedName.String()
	}
	return r.Name
}

// urgency orders bindings of the same priority.
type urgency int

const (
	// background: listed at start, or a cluster changed.
	background urgency = -1
	// live: the binding itself changed.
	live urgency = 0
)

// priority is the place of a binding in the queue: above all bindings of lower
// schedule priority, and live changes above background work of the same.
func (s *scheduler) priority(of binding.Object, u urgency) *int {
	place := int(u)
	if wanted := of.BindingSpec().SchedulePriority; s.options.PriorityScheduling && wanted != nil {
		place += 2 * int(wanted.Priority)
	}
	return &place
}

// backlog knows the bindings whose last try failed, and until when they wait.
type backlog struct {
	base, most, capacity time.Duration
	// waitsForRoom is whether bindings without room wait differently.
	waitsForRoom bool
	now          func() time.Time

	mu      sync.Mutex
	waiting map[request]wait
}

type wait struct {
	tries   int
	forRoom bool
	until   time.Time
}

func newBacklog(o Options) *backlog {
	return &backlog{
		base: o.BaseDelay, most: o.MaxDelay, capacity: o.CapacityDelay, waitsForRoom: o.PriorityScheduling,
		now: time.Now, waiting: map[request]wait{},
	}
}

// fail notes another failure and returns how long to wait: the base delay, doubled
// with every failure in a row up to the most, or longer if only room is missing.
func (b *backlog) fail(r request, class retry) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waiting[r]
	delay := b.base
	for range w.tries {
		if delay >= b.most {
			break
		}
		delay *= 2
	}
	delay = min(delay, b.most)
	w.tries++
	w.forRoom = b.waitsForRoom && class == whenRoom
	if w.forRoom {
		delay = b.capacity
	}
	w.until = b.now().Add(delay)
	b.waiting[r] = w
	return delay
}

// settle forgets the failures of a binding: it succeeded, or it changed.
func (b *backlog) settle(r request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, r)
}

// forRoom are the bindings that wait for clusters to have more room.
func (b *backlog) forRoom() []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	var requests []request
	for r, w := range b.waiting {
		if w.forRoom {
			requests = append(requests, r)
		}
	}
	return requests
}

// count tells how many bindings wait at this time.
func (b *backlog) count(forRoom bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, n := b.now(), 0
	for _, w := range b.waiting {
		if w.forRoom == forRoom && w.until.After(now) {
			n++
		}
	}
	return n
}
