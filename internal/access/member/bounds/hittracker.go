package bounds

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// maxHits is the maximum number of hits that are tracked for one member.
	maxHits = 32
	// HitRetention is how long an exceeded limit is tracked. It is longer than the longest backoff
	// of a watch.
	HitRetention = 2 * time.Minute
)

// HitTracker tracks which limits a member exceeded recently. A hit is one such limit.
type HitTracker struct {
	cluster string
	now     func() time.Time

	mu sync.Mutex
	// count is called for each hit.
	count func(cluster string, bound Bound)
	hits  map[hitKey]*lastHit
}

type hitKey struct {
	bound   Bound
	subject string
}

type lastHit struct {
	exceeded *ExceededError
	time     time.Time
}

// NewHitTracker returns the tracker of a member.
func NewHitTracker(cluster string, now func() time.Time) *HitTracker {
	return &HitTracker{cluster: cluster, now: now, count: func(string, Bound) {}, hits: map[hitKey]*lastHit{}}
}

// SetCounter makes the tracker call count for each hit from now on.
func (h *HitTracker) SetCounter(count func(cluster string, bound Bound)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count = count
}

// Record tracks and counts a hit, and returns it as an error with the name of the cluster.
func (h *HitTracker) Record(e ExceededError) error {
	e.Cluster = h.cluster
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(h.cluster, e.Bound)
	key, now := hitKey{e.Bound, e.Subject}, h.now()
	if existing := h.hits[key]; existing != nil {
		existing.exceeded, existing.time = &e, now
		return &e
	}
	if len(h.hits) >= maxHits {
		h.removeExpired(now)
	}
	if len(h.hits) < maxHits {
		h.hits[key] = &lastHit{&e, now}
	}
	return &e
}

// recordUnlessPageTooLarge records a hit like Record. It does not record a page that is too large,
// because a smaller page may be within the limits.
func (h *HitTracker) recordUnlessPageTooLarge(e ExceededError) error {
	if !e.isTooLarge() {
		return h.Record(e)
	}
	e.Cluster = h.cluster
	return &e
}

// Recent returns the hits of the last HitRetention, ordered by subject and bound.
func (h *HitTracker) Recent() []ExceededError {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeExpired(h.now())
	recent := make([]ExceededError, 0, len(h.hits))
	for _, recorded := range h.hits {
		recent = append(recent, *recorded.exceeded)
	}
	slices.SortFunc(recent, func(a, b ExceededError) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Bound, b.Bound))
	})
	return recent
}

func (h *HitTracker) removeExpired(now time.Time) {
	for key, recorded := range h.hits {
		if now.Sub(recorded.time) >= HitRetention {
			delete(h.hits, key)
		}
	}
}
