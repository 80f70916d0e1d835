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

// follower keeps the stored objects of one kind equal to the cache.
type follower struct {
	feed *Feed
	kind *objectcache.Kind
	// stop ends run.
	stop context.CancelFunc
	// clusters has the state of each wanted cluster that serves the kind. Only run uses it.
	clusters map[string]*followedCluster
	// dueAt is the time of the next compareDue. Only run uses it.
	dueAt time.Time

	// mu protects the fields below.
	mu sync.Mutex
	// isCompareRequested is true if all clusters must be compared.
	isCompareRequested bool
	// interrupt ends the wait for changes.
	interrupt context.CancelFunc
}

// followedCluster is the state of one cluster's objects.
type followedCluster struct {
	key sourceKey
	// isEqual is true if the sink was equal to the cache at the position of the cursor. Otherwise, changes
	// are dropped, and the cluster is compared.
	isEqual bool
	// compareAt is the time of the next comparison.
	compareAt time.Time
	failures  int
	// version is the cluster's resourceVersion at the last comparison.
	version string
	// isRestarted is true if resourceVersions have restarted since the last comparison, because the storage
	// of the member was restored. Then an equal resourceVersion may stand for other content.
	isRestarted bool
}

func newFollower(f *Feed, kind *objectcache.Kind) *follower {
	return &follower{feed: f, kind: kind, clusters: map[string]*followedCluster{}}
}

// compareAll makes run compare all clusters now.
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

// run keeps the objects of the kind equal to the cache until ctx ends or the cache removes the kind.
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

// follow compares all clusters, and then follows the log until the log expires or ctx ends.
func (f *follower) follow(ctx context.Context) {
	// The position is older than the snapshots of the comparisons. Changes between them are applied twice
	// in the same order, which has the same result.
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

// requireComparison makes compareDue compare all clusters now.
func (f *follower) requireComparison() {
	f.dueAt = time.Time{}
	for _, cluster := range f.clusters {
		f.setUnequal(cluster)
	}
}

// setUnequal makes compareDue compare a cluster now.
func (f *follower) setUnequal(cluster *followedCluster) {
	cluster.isEqual, cluster.compareAt = false, time.Time{}
	f.feed.progress.setUnequal(cluster.key)
}

// next returns the next changes. It returns no changes after the wait time, or if a comparison is requested.
// An error means that changes were lost.
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

// compareDue compares the clusters whose comparison is due, and returns the time until the next one.
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

// compareCluster makes the objects of one cluster equal to a snapshot.
func (f *follower) compareCluster(ctx context.Context, cluster *followedCluster, objects *objectcache.ClusterObjects) {
	if !cluster.isEqual {
		f.feed.progress.setBehind(cluster.key)
	}
	version := objects.ResourceVersion()
	// If the log has expired, the restart shows only in the version.
	if cluster.version != "" && objectcache.IsOlder(version, cluster.version) {
		cluster.isRestarted = true
	}
	if err := f.feed.use(ctx, func() error { return f.feed.compare(ctx, objects, !cluster.isRestarted) }); err != nil {
		f.fail(ctx, cluster, err)
		return
	}
	// Half of the interval is random, so that not all sources are compared at once.
	every := f.feed.limits.CompareEvery
	*cluster = followedCluster{key: cluster.key, isEqual: true, compareAt: time.Now().Add(every/2 + rand.N(every/2+1)), version: version}
	if f.feed.progress.setEqual(cluster.key) {
		klog.FromContext(ctx).Info("The sink is equal to the cache again")
	}
}

// fail records an error, and makes the cluster due for a comparison after the backoff.
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

// apply writes changes in batches.
func (f *follower) apply(ctx context.Context, events []objectcache.Event) {
	b := newBatch(f.feed)
	removals := lastRemovals(events)
	for i, event := range events {
		if removal, isRemoved := removals[event.Cluster]; isRemoved && i < removal {
			// The cleanup removes all objects of the cluster, unless the feed ends soon too.
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

// needsWrite reports whether an event is a change of an object that must be written. It handles all other
// events.
func (f *follower) needsWrite(event objectcache.Event) bool {
	cluster := f.clusters[event.Cluster]
	switch event.Type {
	case objectcache.ClusterRemoved:
		f.forget(event.Cluster)
		f.feed.requestCleanup()
		return false
	case objectcache.NamespacesChanged: // namespaces restrict only the proxy
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

// lastRemovals returns the position of each cluster's last removal.
func lastRemovals(events []objectcache.Event) map[string]int {
	removals := map[string]int{}
	for i, event := range events {
		if event.Type == objectcache.ClusterRemoved {
			removals[event.Cluster] = i
		}
	}
	return removals
}

// flush writes a batch and empties it. After an error, it is unknown which clusters failed, so each cluster
// of the batch is compared.
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
