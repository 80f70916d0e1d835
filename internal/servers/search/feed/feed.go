// Package feed keeps copies of the cached objects equal to the cache.
//
// One Feed serves one Sink. For each kind, a follower compares the stored objects of each source with the
// cache, writes the differences in batches, and then follows the log of changes. After an error, an expired
// log or a loss of data in the sink, the feed compares again. It has no other state than the sink: a
// comparison after a restart finds objects that were deleted in the meantime, and writes nothing if nothing
// has changed.
//
// Invariants:
//   - A source that was never listed is unknown. None of its objects are removed.
//   - Objects of a source that the cache does not have are removed only after the cache has evaluated all
//     registries and clusters, and after the source has been missing for some time. A source that a registry
//     selects is not missing unless the member reports that it does not serve the kind.
//   - After a failed write, the source is compared later. Until then, its changes are dropped, because the
//     comparison finds them. Therefore, pending changes need no memory.
//   - A failing source delays no other source of its kind, and a failing kind delays no other kind, except
//     that requests to a sink that hangs last until they time out.
package feed

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Limits are the limits of a feed. A zero field has its default.
type Limits struct {
	// BatchObjects is the maximum number of changes in one call of Apply. Default: 500.
	BatchObjects int
	// BatchBytes is the maximum memory of the cached objects, which are compressed, in one call of Apply. One
	// object is always allowed. Default: 1 MiB.
	BatchBytes int64
	// Parallel is the maximum number of kinds that use the sink concurrently. Default: 2.
	Parallel int
	// RetryMin and RetryMax limit the exponential backoff before a failed source is compared again.
	// Defaults: 500 ms and 1 minute.
	RetryMin, RetryMax time.Duration
	// CompareEvery is the interval at which the sink is compared, to find losses that it did not report.
	// Default: 1 hour.
	CompareEvery time.Duration
	// RemoveAfter is the time for which a source must be missing in the cache before its objects are
	// removed. If the configuration of a sink is removed with its last source, the feed ends within this
	// time, so that the objects stay. Default: 10 s.
	RemoveAfter time.Duration
	// PollEvery is the interval at which a source that has not been listed yet is checked. Default: 1 s.
	PollEvery time.Duration
}

func (l Limits) withDefaults() Limits {
	l.BatchObjects = cmp.Or(l.BatchObjects, 500)
	l.BatchBytes = cmp.Or(l.BatchBytes, 1<<20)
	l.Parallel = cmp.Or(l.Parallel, 2)
	l.RetryMin = cmp.Or(l.RetryMin, 500*time.Millisecond)
	l.RetryMax = cmp.Or(l.RetryMax, time.Minute)
	l.CompareEvery = cmp.Or(l.CompareEvery, time.Hour)
	l.RemoveAfter = cmp.Or(l.RemoveAfter, 10*time.Second)
	l.PollEvery = cmp.Or(l.PollEvery, time.Second)
	return l
}

// Feed keeps one sink equal to the cache.
type Feed struct {
	cache  *objectcache.Cache
	sink   Sink
	limits Limits

	// slots bounds the number of kinds that use the sink concurrently.
	slots chan struct{}
	// applying is locked for reading while a follower writes, and exclusively while a missing source is
	// removed. Thus a source that returns during the removal is stored after it.
	applying sync.RWMutex
	// cleanups requests the removal of missing sources.
	cleanups chan struct{}
	// missing has the time since when each stored source has been missing in the cache. Only runCleanups
	// uses it.
	missing   map[sourceKey]time.Time
	followers map[*objectcache.Kind]*follower
	// ended has, for each kind, the channel that is closed when its last follower has ended.
	ended    map[schema.GroupVersionKind]chan struct{}
	progress progress
}

// New returns a feed. It does nothing before Run.
func New(cache *objectcache.Cache, sink Sink, limits Limits) *Feed {
	limits = limits.withDefaults()
	return &Feed{
		cache: cache, sink: sink, limits: limits,
		slots:    make(chan struct{}, limits.Parallel),
		cleanups: make(chan struct{}, 1), missing: map[sourceKey]time.Time{},
		followers: map[*objectcache.Kind]*follower{}, ended: map[schema.GroupVersionKind]chan struct{}{},
		progress: progress{sources: map[sourceKey]*sourceProgress{}, busySince: map[schema.GroupVersionKind]time.Time{}},
	}
}

// Run keeps the sink equal to the cache until ctx ends. It returns after all its goroutines have ended. It
// must be called only once.
func (f *Feed) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("sink", f.sink.Name())))
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { f.runCleanups(ctx) })
	var sinkChanged <-chan struct{}
	for ctx.Err() == nil {
		// The channels are read before the state whose changes they report, so that no change is missed.
		isSinkChanged := isClosed(sinkChanged)
		kindsChanged := f.cache.Changed()
		if notifier, ok := f.sink.(Notifier); ok {
			sinkChanged = notifier.Changed()
		}
		f.syncFollowers(ctx, &running)
		if isSinkChanged {
			for _, follower := range f.followers {
				follower.compareAll()
			}
		}
		f.requestCleanup()
		select {
		case <-ctx.Done():
		case <-kindsChanged:
		case <-sinkChanged:
		}
	}
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// syncFollowers starts followers for new kinds, and stops those of removed kinds.
func (f *Feed) syncFollowers(ctx context.Context, running *sync.WaitGroup) {
	kinds := f.cache.Kinds()
	for kind, follower := range f.followers {
		if !slices.Contains(kinds, kind) {
			follower.stop()
			delete(f.followers, kind)
		}
	}
	for _, kind := range kinds {
		if f.followers[kind] != nil {
			continue
		}
		follower := newFollower(f, kind)
		f.followers[kind] = follower
		followerContext, stop := context.WithCancel(ctx)
		follower.stop = stop
		// The previous follower of a kind that was removed and added again may still write.
		previous := f.ended[kind.GroupVersionKind()]
		ended := make(chan struct{})
		f.ended[kind.GroupVersionKind()] = ended
		running.Go(func() {
			defer close(ended)
			if previous != nil {
				<-previous
			}
			follower.run(followerContext)
			f.requestCleanup()
		})
	}
}

// use calls operation while fewer than Limits.Parallel other kinds use the sink.
func (f *Feed) use(ctx context.Context, operation func() error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case f.slots <- struct{}{}:
	}
	defer func() { <-f.slots }()
	f.applying.RLock()
	defer f.applying.RUnlock()
	return operation()
}

// sourceKey identifies a source. It omits the plural name and the scope of the kind, because they can change
// when a CustomResourceDefinition is recreated, and a sink need not store them.
type sourceKey struct {
	cluster string
	kind    schema.GroupVersionKind
}

func keyOf(source objectcache.Source) sourceKey {
	return sourceKey{cluster: source.Cluster, kind: source.Kind}
}
