package feed

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// follower keeps the objects of one kind equal to the cache.
type follower struct {
	feed *Feed
	kind *objectcache.Kind
	// stop ends run.
	stop context.CancelFunc
	// clusters has the state of each cluster that serves the kind. Only run uses it.
	clusters map[string]*followedCluster
	// restarted has the clusters whose resourceVersions restarted since their last comparison. Only run
	// uses it.
	restarted map[string]bool
	// dueAt is the time at which compareDue must run again. Only run uses it.
	dueAt time.Time

	// mu protects the fields below.
	mu sync.Mutex
	// isCompareRequested is true if all clusters must be compared.
	isCompareRequested bool
	// interrupt ends the wait for changes.
	interrupt context.CancelFunc
}

// followedCluster is the state of the objects of one cluster.
type followedCluster struct {
	key sourceKey
	// isEqual is true if the sink was equal to the cache at the position of the cursor. If it is
	// false, changes are dropped and the cluster is compared.
	isEqual bool
	// compareAt is the time of the next comparison.
	compareAt time.Time
	failures  int
	// version is the resourceVersion of the cluster at the last comparison.
	version string
}

func newFollower(f *Feed, kind *objectcache.Kind) *follower {
	return &follower{feed: f, kind: kind, clusters: map[string]*followedCluster{}, restarted: map[string]bool{}}
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
	requested := f.isCompareRequested
	f.isCompareRequested = false
	return requested
}

// run keeps the objects of the kind equal to the cache until ctx ends or the cache drops the kind.
func (f *follower) run(ctx context.Context) {
	defer func() {
		f.feed.progress.forgetKind(f.kind.GroupVersionKind())
		for _, cluster := range f.clusters {
			f.feed.progress.forget(cluster.key)
		}
	}()
	for ctx.Err() == nil && !isClosed(f.kind.Removed()) {
		f.follow(ctx)
	}
}

// follow compares all clusters, and then follows the log until the log is lost or ctx ends.
func (f *follower) follow(ctx context.Context) {
	// Positions are older than the snapshots of the comparisons. Changes between them are applied
	// twice, in order, so that the result is the same.
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

// requireComparison makes compareDue compare all clusters at once.
func (f *follower) requireComparison() {
	f.dueAt = time.Time{}
	for _, cluster := range f.clusters {
		f.setUnequal(cluster)
	}
}

// setUnequal makes compareDue compare a cluster at once.
func (f *follower) setUnequal(cluster *followedCluster) {
	cluster.isEqual, cluster.compareAt = false, time.Time{}
	f.feed.progress.setUnequal(cluster.key)
}

// next returns the next changes. It returns none after the time in wait, or if a comparison is
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

// compareDue compares the clusters whose comparison is due, and returns the time until the next one.
func (f *follower) compareDue(ctx context.Context) time.Duration {
	snapshot := f.kind.Snapshot()
	wait := f.feed.limits.CompareEvery
	present := map[string]bool{}
	for _, objects := range snapshot.Clusters() {
		source := *objects.Source()
		present[source.Cluster] = true
		if !f.feed.sink.Wants(source) {
			f.forget(source.Cluster)
			continue
		}
		cluster := f.cluster(source)
		if !cluster.isEqual && !isListed(objects) {
			wait = min(wait, f.feed.limits.PollEvery)
			continue
		}
		if !time.Now().Before(cluster.compareAt) {
			f.compareCluster(ctx, cluster, objects)
		}
		wait = min(wait, time.Until(cluster.compareAt))
	}
	for name := range f.clusters {
		if !present[name] {
			f.forget(name)
		}
	}
	for name := range f.restarted {
		if !present[name] {
			delete(f.restarted, name)
		}
	}
	return max(wait, 0)
}

// isListed reports whether the objects of a cluster are known.
func isListed(objects *objectcache.ClusterObjects) bool {
	state, _, _ := objects.State()
	return state != objectcache.Waiting
}

func (f *follower) cluster(source objectcache.Source) *followedCluster {
	cluster := f.clusters[source.Cluster]
	if cluster == nil {
		cluster = &followedCluster{key: keyOf(source)}
		f.clusters[source.Cluster] = cluster
	}
	return cluster
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
	name, version, losses := objects.Source().Cluster, objects.ResourceVersion(), f.feed.progress.lossCount()
	// After a restart of the numbering, an equal resourceVersion may stand for other content.
	if f.restarted[name] || cluster.version != "" && objectcache.IsOlder(version, cluster.version) {
		f.restarted[name] = true
	}
	if err := f.feed.use(ctx, func() error { return f.feed.compare(ctx, objects, !f.restarted[name]) }); err != nil {
		f.fail(ctx, cluster, err)
		return
	}
	if cluster.failures > 0 {
		f.retryNow()
	}
	delete(f.restarted, name)
	cluster.version = version
	// Half of the interval is random, so that the sources are not compared at the same time.
	every := f.feed.limits.CompareEvery
	cluster.isEqual, cluster.failures, cluster.compareAt = true, 0, time.Now().Add(every/2+rand.N(every/2+1))
	if f.feed.progress.setCompared(cluster.key, losses) {
		klog.FromContext(ctx).Info("The sink is equal to the cache again")
	}
}

// retryNow makes the failed clusters due, because the sink works again.
func (f *follower) retryNow() {
	for _, cluster := range f.clusters {
		if !cluster.isEqual && cluster.failures > 0 {
			cluster.compareAt = time.Time{}
		}
	}
}

// fail records an error, and makes the cluster due for a comparison after a delay.
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

// retryDelay returns the delay after a number of earlier failures. Half of it is random.
func (l Limits) retryDelay(failures int) time.Duration {
	delay := l.RetryMin << min(failures, 20)
	if delay > l.RetryMax || delay <= 0 {
		delay = l.RetryMax
	}
	return delay/2 + rand.N(delay/2+1)
}

// apply writes changes in batches.
func (f *follower) apply(ctx context.Context, events []objectcache.Event) {
	b := batch{feed: f.feed, positions: map[ID]int{}}
	removals := lastRemovals(events)
	for i, event := range events {
		if removal, isRemoved := removals[event.Cluster]; isRemoved && i < removal {
			// The cleanup removes all objects of the cluster, unless the sink itself ends now.
			continue
		}
		if !f.isObjectChange(event) {
			continue
		}
		b.addEvent(event)
		if b.isFull() {
			f.flush(ctx, &b)
		}
	}
	f.flush(ctx, &b)
}

// isObjectChange reports whether an event is a change of an object that must be written. It evaluates
// the other events.
func (f *follower) isObjectChange(event objectcache.Event) bool {
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
		if event.Type == objectcache.Reset {
			f.restarted[event.Cluster] = true
		}
		if cluster != nil {
			f.setUnequal(cluster)
		}
		return false
	}
	switch {
	case cluster == nil: // the sink does not want the cluster, or a comparison will find the change
		return false
	case !cluster.isEqual && cluster.compareAt.IsZero():
		f.dueAt = time.Time{} // the cluster was listed for the first time
		return false
	case !cluster.isEqual:
		return false
	}
	f.feed.progress.setBehind(cluster.key)
	return true
}

// flush writes a batch and empties it.
func (f *follower) flush(ctx context.Context, b *batch) {
	if len(b.changes) == 0 {
		return
	}
	if err := f.feed.use(ctx, func() error { return b.flush(ctx) }); err != nil {
		f.failClusters(ctx, b.changes, err)
	} else {
		f.setApplied(b.changes)
	}
	b.reset()
}

// lastRemovals returns the position of the last removal of each cluster.
func lastRemovals(events []objectcache.Event) map[string]int {
	var removals map[string]int
	for i, event := range events {
		if event.Type != objectcache.ClusterRemoved {
			continue
		}
		if removals == nil {
			removals = map[string]int{}
		}
		removals[event.Cluster] = i
	}
	return removals
}

// failClusters records an error for each cluster of a failed batch. It cannot be known which of them
// failed, so all are compared again, each on its own.
func (f *follower) failClusters(ctx context.Context, changes []Change, err error) {
	for _, change := range changes {
		if cluster := f.clusters[change.ID.Cluster]; cluster != nil && cluster.isEqual {
			f.fail(ctx, cluster, err)
		}
	}
}

func (f *follower) setApplied(changes []Change) {
	for _, change := range changes {
		if cluster := f.clusters[change.ID.Cluster]; cluster != nil && cluster.isEqual {
			f.feed.progress.setApplied(cluster.key)
		}
	}
}
