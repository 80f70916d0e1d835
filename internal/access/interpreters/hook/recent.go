package hook

import "sync"

// recent keeps a limited number of values by key. If there are more, it drops the value that was not
// used for the longest time.
type recent[K comparable, V any] struct {
	limit int
	// dropped, if not nil, is called with each value that is dropped.
	dropped func(V)

	mu      sync.Mutex
	uses    uint64
	entries map[K]*recentEntry[V]
}

type recentEntry[V any] struct {
	value   V
	lastUse uint64
}

func newRecent[K comparable, V any](limit int, dropped func(V)) *recent[K, V] {
	return &recent[K, V]{limit: limit, dropped: dropped, entries: map[K]*recentEntry[V]{}}
}

// get returns the kept value of a key. If there is none, or if isCurrent reports false, it keeps and
// returns a new value.
func (r *recent[K, V]) get(key K, isCurrent func(V) bool, create func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses++
	entry, found := r.entries[key]
	if found && !isCurrent(entry.value) {
		r.drop(key)
		found = false
	}
	if !found {
		if len(r.entries) >= r.limit {
			r.drop(r.leastRecent())
		}
		entry = &recentEntry[V]{value: create()}
		r.entries[key] = entry
	}
	entry.lastUse = r.uses
	return entry.value
}

func (r *recent[K, V]) leastRecent() K {
	var oldest K
	lastUse := r.uses
	for key, entry := range r.entries {
		if entry.lastUse < lastUse {
			oldest, lastUse = key, entry.lastUse
		}
	}
	return oldest
}

func (r *recent[K, V]) drop(key K) {
	value := r.entries[key].value
	delete(r.entries, key)
	if r.dropped != nil {
		r.dropped(value)
	}
}

// each calls do with each kept value.
func (r *recent[K, V]) each(do func(V)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range r.entries {
		do(entry.value)
	}
}
