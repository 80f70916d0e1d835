package feed

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// follower keeps one kind's stored objects equal to the cache.
type follower struct {
	feed *Feed
	kind *objectcache.Kind
	// stop ends run.
	stop context.CancelFunc
	// clusters contains the state of each wanted cluster that serves the kind. Only run uses it.
	clusters map[string]*followedCluster
	// dueAt is the time at which compareDue must be called next. Only run uses it.
	dueAt time.Time

	// mu protects the fields below.
	mu sync.Mutex
	// isCompareRequested is true if all clusters must be compared.
	isCompareRequested bool
	// interrupt ends the current wait for changes.
	interrupt context.CancelFunc
}

// followedCluster is the state of one cluster's objects in the sink.
type followedCluster struct {
	key sourceKey
	// isEqual is true if the sink was equal to the cache at the cursor's position. Otherwise, changes
	// are dropped, and the cluster must be compared.
	isEqual bool
	// compareAt is the time of the next comparison.
	compareAt time.Time
	failures  int
	// version is the cluster's resourceVersion at the last comparison.
	version string
	// isRestarted is true if resourceVersions have restarted since the last comparison, because the
	// member's storage was restored. Then objects with equal resourceVersions may have different
	// content.
	isRestarted bool
}

func newFollower(f *Feed, kind *objectcache.Kind) *follower {
	return &follower{feed: f, kind: kind, clusters: map[string]*followedCluster{}}
}

// compareAll makes run compare all clusters immediately.
func (f *follower) compareAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isCompareRequested = true
	if f.interrupt != nil {
		f.interrupt()
	}
}

// takeRequest reports whether a comparison of all clusters is requested, and resets the request.
func (f *follower) takeRequest() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	isRequested := f.isCompareRequested
	f.isCompareRequested = false
	return isRequested
}

// run keeps the kind's stored objects equal to the cache until ctx ends or the cache removes the kind.
func (f *follower) run(ctx context.Context) {
	defer func() {
		f.feed.progress.forgetKind(f.kind.GroupVersionKind())
		for name := range f.clusters {
			f.forget(name)
		}
	}()
	for ctx.Err() == nil && !isClosed(f.kind.Removed()) {
		f.follow(ctx)
	}
}

// follow compares all clusters, and then reads the change log until the log expires or ctx ends.
func (f *follower) follow(ctx context.Context) {
	// The cursor begins before the snapshots that are compared. Changes between the two are applied
	// twice, but in the same order, which has the same result.
	kind := f.kind.GroupVersionKind()
	cursor := f.kind.Follow(f.kind.Snapshot().Position())
	f.requireComparison()
	f.feed.progress.setWaiting(kind)
	f.feed.progress.setBusy(kind)
	for ctx.Err() == nil {
		if f.takeRequest() {
			f.requireComparison()
		}
		if !time.Now().Before(f.dueAt) {
			f.dueAt = time.Now().Add(f.compareDue(ctx))
		}
		if cursor.IsAtEnd() {
			f.feed.progress.setWaiting(kind)
		}
		events, err := f.next(ctx, cursor, time.Until(f.dueAt))
		f.feed.progress.setBusy(kind)
		if err != nil {
			klog.FromContext(ctx).V(1).Info("Comparing all objects of a kind again", "kind", kind, "reason", err.Error())
			return
		}
		f.apply(ctx, events)
	}
}

// requireComparison makes compareDue compare all clusters immediately.
func (f *follower) requireComparison() {
	f.dueAt = time.Time{}
	for _, cluster := range f.clusters {
		f.setUnequal(cluster)
	}
}

// setUnequal makes compareDue compare the cluster immediately.
func (f *follower) setUnequal(cluster *followedCluster) {
	cluster.isEqual, cluster.compareAt = false, time.Time{}
	f.feed.progress.setUnequal(cluster.key)
}

// next returns the next changes. It returns no changes if the wait time is over or a comparison is
// requested. An error means that changes were lost.
func (f *follower) next(ctx context.Context, cursor *objectcache.Cursor, wait time.Duration) ([]objectcache.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	f.mu.Lock()
	f.interrupt = cancel
	if f.isCompareRequested {
		cancel()
	}
	f.mu.Unlock()
	events, err := cursor.Next(ctx)
	if err != nil && ctx.Err() != nil && !errors.Is(err, objectcache.ErrExpired) {
		return nil, nil
	}
	return events, err
}

// compareDue compares the clusters whose comparison is due, and returns the time until the next
// comparison.
func (f *follower) compareDue(ctx context.Context) time.Duration {
	snapshot := f.kind.Snapshot()
	wait := f.feed.limits.CompareEvery
	for _, objects := range snapshot.Clusters() {
		source := *objects.Source()
		if !f.feed.sink.Wants(source) {
			f.forget(source.Cluster)
			continue
		}
		cluster := f.clusters[source.Cluster]
		if cluster == nil {
			cluster = &followedCluster{key: keyOf(source)}
			f.clusters[source.Cluster] = cluster
		}
		if state, _, _ := objects.State(); !cluster.isEqual && state == objectcache.Waiting {
			wait = min(wait, f.feed.limits.PollEvery)
			continue
		}
		if !time.Now().Before(cluster.compareAt) {
			f.compareCluster(ctx, cluster, objects)
		}
		wait = min(wait, time.Until(cluster.compareAt))
	}
	for name := range f.clusters {
		if snapshot.Cluster(name) == nil {
			f.forget(name)
		}
	}
	return max(wait, 0)
}

func (f *follower) forget(name string) {
	if cluster := f.clusters[name]; cluster != nil {
		f.feed.progress.forget(cluster.key)
		delete(f.clusters, name)
	}
}

// compareCluster makes one cluster's stored objects equal to the snapshot.
func (f *follower) compareCluster(ctx context.Context, cluster *followedCluster, objects *objectcache.ClusterObjects) {
	if !cluster.isEqual {
		f.feed.progress.setBehind(cluster.key)
	}
	version := objects.ResourceVersion()
	// If the log has expired, only the version shows the restart.
	if cluster.version != "" && objectcache.IsOlder(version, cluster.version) {
		cluster.isRestarted = true
	}
	if err := f.feed.use(ctx, func() error { return f.feed.compare(ctx, objects, !cluster.isRestarted) }); err != nil {
		f.fail(ctx, cluster, err)
		return
	}
	// Half of the interval is random, so that not all sources are compared at the same time.
	every := f.feed.limits.CompareEvery
	*cluster = followedCluster{key: cluster.key, isEqual: true, compareAt: time.Now().Add(every/2 + rand.N(every/2+1)), version: version}
	if f.feed.progress.setEqual(cluster.key) {
		klog.FromContext(ctx).Info("The sink is equal to the cache again")
	}
}

// fail records an error, and schedules the cluster's comparison after the backoff.
func (f *follower) fail(ctx context.Context, cluster *followedCluster, err error) {
	if ctx.Err() != nil {
		return
	}
	cluster.isEqual = false
	cluster.compareAt = time.Now().Add(f.feed.limits.retryDelay(cluster.failures))
	cluster.failures++
	f.dueAt = time.Time{}
	if f.feed.progress.setFailed(cluster.key, err) {
		klog.FromContext(ctx).Error(err, "Writing objects to the sink; retrying", "member", cluster.key.cluster, "kind", cluster.key.kind)
	}
}

// retryDelay returns the exponential backoff after the given number of earlier failures. Half of it is
// random.
func (l Limits) retryDelay(failures int) time.Duration {
	delay := l.RetryMin << min(failures, 20)
	if delay > l.RetryMax || delay <= 0 {
		delay = l.RetryMax
	}
	return delay/2 + rand.N(delay/2+1)
}

// apply writes the events' changes in batches.
func (f *follower) apply(ctx context.Context, events []objectcache.Event) {
	b := newBatch(f.feed)
	removals := lastRemovals(events)
	for i, event := range events {
		if removal, isRemoved := removals[event.Cluster]; isRemoved && i < removal {
			// The cleanup removes all of the cluster's objects, unless the feed ends soon too.
			continue
		}
		if !f.needsWrite(event) {
			continue
		}
		b.addEvent(event)
		if b.isFull() {
			f.flush(ctx, b)
		}
	}
	f.flush(ctx, b)
}

// needsWrite reports whether the event changes an object that must be written. If not, needsWrite
// itself handles the event.
func (f *follower) needsWrite(event objectcache.Event) bool {
	cluster := f.clusters[event.Cluster]
	switch event.Type {
	case objectcache.ClusterRemoved:
		f.forget(event.Cluster)
		f.feed.requestCleanup()
		return false
	case objectcache.NamespacesChanged: // namespaces restrict only what the proxy shows
		return false
	case objectcache.Reset, objectcache.ClusterAdded:
		f.dueAt = time.Time{}
		if cluster != nil {
			cluster.isRestarted = cluster.isRestarted || event.Type == objectcache.Reset
			f.setUnequal(cluster)
		}
		return false
	}
	switch {
	case cluster == nil: // the sink does not want the cluster, or a comparison will find the change
		return false
	case !cluster.isEqual:
		if cluster.compareAt.IsZero() {
			f.dueAt = time.Time{} // the cluster was listed for the first time
		}
		return false
	}
	f.feed.progress.setBehind(cluster.key)
	return true
}

// lastRemovals maps each removed cluster to the position of its last removal in events.
func lastRemovals(events []objectcache.Event) map[string]int {
	removals := map[string]int{}
	for i, event := range events {
		if event.Type == objectcache.ClusterRemoved {
			removals[event.Cluster] = i
		}
	}
	return removals
}

// flush writes a batch and empties it. After an error, each of the batch's clusters must be compared,
// because it is unknown which of them failed.
func (f *follower) flush(ctx context.Context, b *batch) {
	changes := b.changes
	err := f.feed.use(ctx, func() error {
		// Wants may have changed since the changes were read.
		b.changes = slices.DeleteFunc(b.changes, func(c Change) bool { return !f.feed.sink.Wants(c.Source) })
		return b.flush(ctx)
	})
	for _, change := range changes {
		cluster := f.clusters[change.ID.Cluster]
		switch {
		case cluster == nil || !cluster.isEqual:
		case err != nil:
			f.fail(ctx, cluster, err)
		default:
			f.feed.progress.setEqual(cluster.key)
		}
	}
}
