// Package feed copies the cached objects to sinks, and keeps the copies equal to the cache.
//
// One Feed serves one Sink. For each kind, a follower compares each source's stored objects with the
// cache, writes the differences in batches, and then reads the cache's change log. After an error, when
// the log has expired, or after the sink lost data, the feed compares again. It has no state besides
// the sink: a comparison after a restart finds objects that were deleted in the meantime, and writes
// nothing if nothing has changed.
//
// Invariants:
//   - The content of a source that was never listed is unknown. None of its objects are removed.
//   - If the cache does not have a source, the source's objects are removed only after the cache has
//     evaluated all registries and clusters, and after the source has been missing for some time. A
//     source that a registry selects does not count as missing unless the member reports that it does
//     not serve the kind.
//   - After a failed write, the source is compared later. Until then, its changes are dropped, because
//     the comparison will find them. Therefore, pending changes need no memory.
//   - A source that fails does not delay other sources of its kind, and a kind that fails does not
//     delay other kinds. The only exception is a sink that does not respond: each request to it lasts
//     until it times out.
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

// Limits are a feed's limits. A field that is zero has its default.
type Limits struct {
	// BatchObjects is the maximum number of changes in one call of Apply. Default: 500.
	BatchObjects int
	// BatchBytes is the maximum memory of the cached objects, which are compressed, in one call of
	// Apply. One object is always permitted, regardless of its size. Default: 1 MiB.
	BatchBytes int64
	// Parallel is the maximum number of kinds that use the sink concurrently. Default: 2.
	Parallel int
	// RetryMin and RetryMax limit the exponential backoff before a failed source is compared again.
	// Defaults: 500 ms and 1 minute.
	RetryMin, RetryMax time.Duration
	// CompareEvery is the interval at which the sink is compared with the cache, to find losses that
	// the sink did not report. Default: 1 hour.
	CompareEvery time.Duration
	// RemoveAfter is how long a source must be missing in the cache before its objects are removed. If
	// a sink's configuration is removed together with its last source, the feed ends within this time,
	// so that the objects stay. Default: 10 s.
	RemoveAfter time.Duration
	// PollEvery is the interval at which the feed checks whether a source has been listed. Default:
	// 1 s.
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

	// slots limits the number of kinds that use the sink concurrently.
	slots chan struct{}
	// applying is locked for reading while a follower writes, and exclusively while a missing source is
	// removed. Thus, if a source returns during the removal, its objects are stored after the removal.
	applying sync.RWMutex
	// cleanups contains at most one request to remove missing sources.
	cleanups chan struct{}
	// missing maps each stored source that is missing in the cache to the time since when it has been
	// missing. Only runCleanups uses it.
	missing   map[sourceKey]time.Time
	followers map[*objectcache.Kind]*follower
	// ended maps each kind to the channel that is closed when the kind's last follower has ended.
	ended    map[schema.GroupVersionKind]chan struct{}
	progress progress
}

// New returns a feed that does nothing until Run is called.
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
		// Read the channels before the state whose changes they report, so that no change is missed.
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

// syncFollowers starts followers for new kinds, and stops the followers of removed kinds.
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
		// If a kind was removed and added again, its previous follower may still write.
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

// use calls operation as soon as fewer than Limits.Parallel other kinds use the sink.
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

// sourceKey identifies a source. It omits the kind's plural name and scope, because they can change
// when a CustomResourceDefinition is recreated, and a sink need not store them.
type sourceKey struct {
	cluster string
	kind    schema.GroupVersionKind
}

func keyOf(source objectcache.Source) sourceKey {
	return sourceKey{cluster: source.Cluster, kind: source.Kind}
}
