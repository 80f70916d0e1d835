package objectcache

import "sync"

// budget counts the memory of all objects. Without it, each kind of a member could use the whole limit of
// one kind.
type budget struct {
	maxBytes, maxClusterBytes int64

	mu       sync.Mutex
	total    int64
	clusters map[string]int64
}

func newBudget(options Options) *budget {
	return &budget{maxBytes: options.MaxBytes, maxClusterBytes: options.MaxClusterBytes, clusters: map[string]int64{}}
}

// add counts bytes of a cluster, which may be negative.
func (b *budget) add(cluster string, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total += bytes
	b.clusters[cluster] += bytes
	if b.clusters[cluster] == 0 {
		delete(b.clusters, cluster)
	}
}

// check returns an error if more bytes of a cluster would exceed a limit.
func (b *budget) check(cluster string, more int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case more <= 0:
		return nil
	case b.clusters[cluster]+more > b.maxClusterBytes:
		return &boundError{what: "bytes in objects of all kinds", limit: b.maxClusterBytes}
	case b.total+more > b.maxBytes:
		return &boundError{what: "bytes in objects", limit: b.maxBytes, isShared: true}
	}
	return nil
}
