package bounds

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// remembered is how many exceeded limits of one member are remembered.
	remembered = 32
	// Memory is how long an exceeded limit is remembered: longer than the longest pause
	// between two tries of a watch.
	Memory = 2 * time.Minute
)

// Ledger remembers which limits a member hit lately.
type Ledger struct {
	cluster string
	now     func() time.Time

	mu sync.Mutex
	// count counts each hit.
	count func(cluster string, bound Bound)
	hits  map[hit]*last
}

type hit struct {
	bound   Bound
	subject string
}

type last struct {
	exceeded *ExceededError
	at       time.Time
}

// NewLedger makes the ledger of a member.
func NewLedger(cluster string, now func() time.Time) *Ledger {
	return &Ledger{cluster: cluster, now: now, count: func(string, Bound) {}, hits: map[hit]*last{}}
}

// CountBy calls count for each hit from now on.
func (l *Ledger) CountBy(count func(cluster string, bound Bound)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count = count
}

// Record remembers and counts a hit, and returns it as an error that names the cluster.
func (l *Ledger) Record(e ExceededError) error {
	e.Cluster = l.cluster
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(l.cluster, e.Bound)
	key, now := hit{e.Bound, e.Subject}, l.now()
	if known := l.hits[key]; known != nil {
		known.exceeded, known.at = &e, now
		return &e
	}
	if len(l.hits) >= remembered {
		l.forget(now)
	}
	if len(l.hits) < remembered {
		l.hits[key] = &last{&e, now}
	}
	return &e
}

// recordLost is Record for an answer of a list: a page that is too large is not recorded,
// because a smaller one may do.
func (l *Ledger) recordLost(e ExceededError) error {
	if !e.isTooLarge() {
		return l.Record(e)
	}
	e.Cluster = l.cluster
	return &e
}

// Recent returns the hits of the last time, ordered by subject and bound.
func (l *Ledger) Recent() []ExceededError {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(l.now())
	recent := make([]ExceededError, 0, len(l.hits))
	for _, known := range l.hits {
		recent = append(recent, *known.exceeded)
	}
	slices.SortFunc(recent, func(a, b ExceededError) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Bound, b.Bound))
	})
	return recent
}

func (l *Ledger) forget(now time.Time) {
	for key, known := range l.hits {
		if now.Sub(known.at) >= Memory {
			delete(l.hits, key)
		}
	}
}
