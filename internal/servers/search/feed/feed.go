// Package feed answers: how does a copy of the cached objects stay equal to the cache?
//
// One Feed serves one Sink. For each kind, a follower compares the stored objects of each source
// with the cache, writes the differences in batches, and then follows the log of changes. After an
// error, a lost log or a loss of data in the sink, the feed compares again. The sink is therefore
// the only state: after a restart, objects that were deleted in the meantime are found by
// comparison, and nothing is written if nothing changed.
//
// Invariants:
//   - A source that was never listed is unknown. Nothing of it is removed.
//   - Objects of a source that the cache does not have are removed only after the cache evaluated all
//     registries and clusters, and after the source was missing for some time. A source is not missing
//     while a registry selects it and the member did not say that it does not serve the kind.
//   - A source whose write fails is compared again later. Until then its changes are dropped, because
//     the comparison finds them. Pending changes therefore need no memory.
//   - A failing source delays no other source of its kind, and a failing kind delays no other kind,
//     except that requests to a hanging sink last until they time out.
package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Limits are the limits of a feed. A zero value means the default.
type Limits struct {
	// BatchObjects is the maximum number of changes in one call of Apply. Default: 500.
	BatchObjects int
	// BatchBytes is the maximum memory of the cached objects in one call of Apply, in bytes, except
	// that one object is always allowed. Cached objects are compressed. Default: 1 MiB.
	BatchBytes int64
	// Parallel is the maximum number of kinds that use the sink at the same time. Default: 2.
	Parallel int
	// RetryMin and RetryMax limit the delay before a failed source is compared again. The delay
	// doubles with each failure. Defaults: 500 ms and 1 minute.
	RetryMin, RetryMax time.Duration
	// CompareEvery is the time after which the sink is compared without a reason, to find losses that
	// the sink did not report. Default: 1 hour.
	CompareEvery time.Duration
	// RemoveAfter is the time for which a source must be missing in the cache before its objects are
	// removed. Default: 10 s. A sink whose configuration is removed together with the last source has
	// this time to end, so that its objects stay. A source that comes back at once is only compared.
	RemoveAfter time.Duration
	// PollEvery is the interval in which a source without a list is looked at again. Default: 1 s.
	PollEvery time.Duration
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.BatchObjects, 500)
	setDefault(&l.BatchBytes, 1<<20)
	setDefault(&l.Parallel, 2)
	setDefault(&l.RetryMin, 500*time.Millisecond)
	setDefault(&l.RetryMax, time.Minute)
	setDefault(&l.CompareEvery, time.Hour)
	setDefault(&l.RemoveAfter, 10*time.Second)
	setDefault(&l.PollEvery, time.Second)
	return l
}

func setDefault[T comparable](value *T, byDefault T) {
	if *value == *new(T) {
		*value = byDefault
	}
}

// Feed keeps one sink equal to the cache.
type Feed struct {
	cache  *objectcache.Cache
	sink   Sink
	limits Limits

	// slots bounds the kinds that use the sink at the same time.
	slots chan struct{}
	// applying is locked for reading while a follower writes, and exclusively while objects of a
	// source are removed that the cache does not have. Thus a source that comes back at that time
	// is stored after the removal.
	applying sync.RWMutex
	// cleanups requests a removal of sources that the cache does not have.
	cleanups chan struct{}
	// missing has the time since when each stored source is missing in the cache. Only runCleanups
	// uses it.
	missing   map[sourceKey]time.Time
	followers map[*objectcache.Kind]*follower
	// ended has the channel that is closed at the end of the last follower of each kind. Run stops
	// the followers before their successors start, so none waits for long.
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
		progress: progress{sources: map[sourceKey]*sourceProgress{}, kinds: map[schema.GroupVersionKind]kindProgress{}},
	}
}

// Run keeps the sink equal to the cache until ctx ends. It returns after all its goroutines ended.
func Run(ctx context.Context, cache *objectcache.Cache, sink Sink) {
	New(cache, sink, Limits{}).Run(ctx)
}

// Run keeps the sink equal to the cache until ctx ends. It returns after all its goroutines ended.
// Run must be called only once.
func (f *Feed) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("sink", f.sink.Name())))
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { f.runCleanups(ctx) })
	var sinkChanged <-chan struct{}
	for ctx.Err() == nil {
		// The channels are read before the state that they announce, so that no change is missed.
		last := sinkChanged
		kindsChanged := f.cache.Changed()
		sinkChanged = f.sinkChanged()
		isSinkChanged := isClosed(last)
		f.progress.setSinkChanged(sinkChanged, isSinkChanged)
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

// sinkChanged returns the channel that a Notifier closes. For another sink it returns nil.
func (f *Feed) sinkChanged() <-chan struct{} {
	if notifier, ok := f.sink.(Notifier); ok {
		return notifier.Changed()
	}
	return nil
}

// syncFollowers starts the followers of new kinds, and stops those of kinds that are gone.
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
		// A kind that was removed and added again has a new follower. The former one may still write.
		former := f.ended[kind.GroupVersionKind()]
		ended := make(chan struct{})
		f.ended[kind.GroupVersionKind()] = ended
		running.Go(func() {
			defer close(ended)
			if former != nil {
				<-former
			}
			follower.run(followerContext)
			f.requestCleanup()
		})
	}
}

// use calls operation while at most Limits.Parallel kinds use the sink.
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

// sourceKey identifies a source. The plural name and the scope of a kind can change when its
// definition is created anew, and a sink need not store them.
type sourceKey struct {
	cluster string
	kind    schema.GroupVersionKind
}

func keyOf(source objectcache.Source) sourceKey {
	return sourceKey{cluster: source.Cluster, kind: source.Kind}
}
