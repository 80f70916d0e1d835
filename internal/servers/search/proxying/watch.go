package proxying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"

	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// watch serves a watch from the cache. Tables are requested from the members, which know the kind's
// columns.
func (r *request) watch() error {
	if r.format.IsYAML {
		return fanout.NewNotAcceptableError()
	}
	r.Handler.options.Watches(1)
	defer r.Handler.options.Watches(-1)
	ctx, cancel := context.WithTimeout(r.req.Context(), r.watchDuration())
	defer cancel()
	if r.format.IsTable {
		return r.watchTables(ctx)
	}
	reviewed := r.awaitListed(ctx)
	clusters, err := r.readable(ctx, r.participants(reviewed), "watch")
	if err != nil {
		return err
	}
	w := &cachedWatch{
		request: r, out: &eventWriter{request: r}, clusters: map[string]watchedCluster{}, unlisted: map[string]bool{},
		versions: map[string]string{},
	}
	for _, p := range r.participants(reviewed) {
		isShown := slices.ContainsFunc(clusters, func(shown *participant) bool { return shown.cluster == p.cluster })
		w.clusters[p.cluster] = watchedCluster{p.withoutObjects(), !isShown}
	}
	if err := w.begin(ctx, reviewed); err != nil {
		return err
	}
	r.warnings.WriteTo(r.w.Header())
	w.run(ctx)
	return nil
}

// watchDuration returns the time after which the watch ends.
func (r *request) watchDuration() time.Duration {
	if seconds := r.options.TimeoutSeconds; seconds != nil && *seconds > 0 {
		return time.Duration(min(*seconds, int64(24*time.Hour/time.Second))) * time.Second
	}
	shortest := r.Handler.options.MinRequestTimeout
	return shortest + rand.N(shortest) //nolint:gosec // the time must not be secret
}

type cachedWatch struct {
	*request
	out      *eventWriter
	clusters map[string]watchedCluster
	// unlisted are the clusters in the requested version that the cache has not listed yet. The client
	// has these clusters' objects, so it must list again as soon as the cache has listed them.
	unlisted map[string]bool
	cursor   *objectcache.Cursor
	// initial is the snapshot with which the watch begins, or nil.
	initial *objectcache.Snapshot
	// requested is the version that the client requested. versions is the combined version of the
	// events that were written.
	requested combinedversion.Version
	versions  map[string]string
}

// watchedCluster is one of a watch's clusters. isHidden means that the caller may not watch the
// cluster's objects, or that this is unknown.
type watchedCluster struct {
	*participant
	isHidden bool
}

// begin determines the initial state and the first event. reviewed is the snapshot of the clusters in
// which the caller's permissions have been reviewed.
func (w *cachedWatch) begin(ctx context.Context, reviewed *objectcache.Snapshot) error {
	w.requested = combinedversion.Parse(w.options.ResourceVersion)
	sendInitial := w.options.SendInitialEvents
	if w.requested.Clusters() == nil || sendInitial != nil && *sendInitial {
		if err := w.awaitVersion(ctx, w.requested); err != nil {
			return err
		}
		snapshot := w.kind.Snapshot()
		w.cursor = w.kind.Follow(snapshot.Position())
		if sendInitial == nil || *sendInitial {
			w.initial = snapshot
		}
	} else if err := w.resume(); err != nil {
		return err
	}
	for _, c := range w.kind.Snapshot().Clusters() {
		if reviewed.Cluster(c.Source().Cluster) == nil {
			w.showCluster(ctx, c.Source().Cluster)
		}
	}
	if w.initial == nil {
		w.versions = w.visible(w.cursor.Versions())
	}
	return nil
}

// resume begins the watch with the first event after the requested version.
func (w *cachedWatch) resume() error {
	from := maps.Clone(w.requested.Clusters())
	snapshot := w.kind.Snapshot()
	for cluster := range from {
		if c := snapshot.Cluster(cluster); c != nil && c.ResourceVersion() == "" {
			w.unlisted[cluster] = true
			delete(from, cluster)
		}
	}
	cursor, err := w.kind.FollowFrom(from)
	if err != nil {
		return apierrors.NewResourceExpired("the requested resourceVersion is too old: list again: " + err.Error())
	}
	w.cursor = cursor
	return nil
}

// visible returns the versions from which the client may resume. A hidden cluster keeps the requested
// version, so that the client does not miss the cluster's events if it may see them later.
func (w *cachedWatch) visible(versions map[string]string) map[string]string {
	for cluster, c := range w.clusters {
		switch own := w.requested.For(cluster); {
		case !c.isHidden:
		case own != "" && w.requested.Clusters() != nil:
			versions[cluster] = own
		default:
			delete(versions, cluster)
		}
	}
	for cluster := range w.unlisted {
		versions[cluster] = w.requested.For(cluster)
	}
	return versions
}

// awaitVersion waits for a limited time until the cache is not older than the given version.
func (w *cachedWatch) awaitVersion(ctx context.Context, version combinedversion.Version) error {
	if len(version.Clusters()) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.limits.Lookup)
	defer cancel()
	// A cursor from this version skips all older events, so it shows when the cache has passed the
	// version.
	for {
		snapshot := w.kind.Snapshot()
		late := ""
		for cluster, wanted := range version.Clusters() {
			if c := snapshot.Cluster(cluster); c != nil && objectcache.IsOlder(c.ResourceVersion(), wanted) {
				late = cluster
			}
		}
		if late == "" {
			return nil
		}
		select {
		case <-time.After(w.limits.Lookup / 50):
		case <-ctx.Done():
			err := storage.NewTooLargeResourceVersionError(0, 0, 1)
			var tooLarge *apierrors.StatusError
			if errors.As(err, &tooLarge) {
				tooLarge.ErrStatus.Message = fmt.Sprintf(
					"Too large resource version: cluster %q has not reached it within %s: try again, or watch without a resourceVersion",
					late, w.limits.Lookup)
			}
			return err
		}
	}
}

// run writes events until the watch ends. The header has been sent, so an error can only be sent as an
// event.
func (w *cachedWatch) run(parent context.Context) {
	ctx, end := context.WithCancelCause(parent)
	var reviews sync.WaitGroup
	defer reviews.Wait()
	defer end(nil)
	w.out.start()
	if !w.writeInitial() {
		return
	}
	next := time.Now().Add(w.limits.Bookmark)
	for {
		waiting, stop := context.WithDeadline(ctx, next)
		events, err := w.cursor.Next(waiting)
		stop()
		isDue := !time.Now().Before(next)
		switch {
		case parent.Err() != nil:
			return
		case ctx.Err() != nil:
			w.out.expire(context.Cause(ctx).Error())
			return
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			w.out.expire("the watch fell behind, or its objects are no longer cached: list again: " + err.Error())
			return
		case !w.writeEvents(ctx, events):
			return
		case isDue && !w.writeBookmark():
			return
		case isDue:
			next = time.Now().Add(w.limits.Bookmark)
			clusters := slices.Collect(maps.Values(w.clusters))
			reviews.Go(func() {
				if change := w.reviewAgain(ctx, clusters); change != nil {
					end(change)
				}
			})
		}
	}
}

// writeEvents writes the cache's events. It reports whether the watch continues.
func (w *cachedWatch) writeEvents(ctx context.Context, events []objectcache.Event) bool {
	if len(events) == 0 {
		return true
	}
	for i := range events {
		if w.writeEvent(ctx, &events[i]) != nil {
			return false
		}
	}
	w.versions = w.visible(w.cursor.Versions())
	return w.out.flush() == nil
}

// writeInitial writes the initial state, and a bookmark if the client requested the end of the initial
// events. It reports whether the watch continues.
func (w *cachedWatch) writeInitial() bool {
	if w.initial == nil {
		return w.out.flush() == nil
	}
	for _, c := range w.initial.Clusters() {
		if w.writeInitialObjects(c) != nil {
			return false
		}
	}
	w.versions = w.visible(w.cursor.Versions())
	w.initial = nil
	if w.options.SendInitialEvents != nil && w.options.AllowWatchBookmarks && w.out.bookmark(w.versions, true) != nil {
		return false
	}
	return w.out.flush() == nil
}

// writeInitialObjects writes each of the cluster's objects as an event of type ADDED.
func (w *cachedWatch) writeInitialObjects(c *objectcache.ClusterObjects) error {
	p, found := w.clusters[c.Source().Cluster]
	if !found || p.isHidden {
		return nil
	}
	for object := range c.All(p.namespace) {
		if isSelected, err := w.selects(p.participant, object); err != nil || isSelected && w.out.write("ADDED", object, w.versions) != nil {
			return errEnded
		}
	}
	if version := c.ResourceVersion(); version != "" {
		w.versions[p.cluster] = version
	}
	return nil
}

// writeBookmark writes a bookmark if the client wants bookmarks. It reports whether the watch
// continues.
func (w *cachedWatch) writeBookmark() bool {
	for cluster := range w.unlisted {
		if c := w.kind.Snapshot().Cluster(cluster); c != nil && c.ResourceVersion() != "" {
			return w.expire(cluster, "is cached now") == nil
		}
	}
	w.versions = w.visible(w.cursor.Versions())
	return !w.options.AllowWatchBookmarks || w.out.bookmark(w.versions, false) == nil && w.out.flush() == nil
}

// reviewAgain returns an error, which ends the watch, if the caller's permissions have changed. A
// review that fails changes nothing.
func (w *cachedWatch) reviewAgain(ctx context.Context, clusters []watchedCluster) error {
	changes := make([]error, len(clusters))
	fanout.InParallel(len(clusters), func(i int) {
		c := clusters[i]
		isAllowed, err := w.mayRead(ctx, c.participant, "watch")
		switch {
		case err != nil || isAllowed != c.isHidden:
		case c.isHidden:
			changes[i] = fmt.Errorf("the objects of cluster %q can be watched now: list again", c.cluster)
		default:
			changes[i] = w.newDenial(c.cluster, "watch", c.namespace)
		}
	})
	return cmp.Or(changes...)
}

// errEnded means that the watch has ended.
var errEnded = errors.New("the watch has ended")

// expire ends the watch because of a change in a cluster.
func (w *cachedWatch) expire(cluster, change string) error {
	w.out.expire(fmt.Sprintf("cluster %q %s: list again", cluster, change))
	return errEnded
}

// writeEvent writes an event of the cache if the event concerns the request.
func (w *cachedWatch) writeEvent(ctx context.Context, event *objectcache.Event) error {
	switch event.Type {
	case objectcache.Added, objectcache.Modified, objectcache.Deleted:
	case objectcache.ClusterAdded:
		w.showCluster(ctx, event.Cluster)
		return nil
	case objectcache.ClusterRemoved:
		delete(w.clusters, event.Cluster)
		delete(w.unlisted, event.Cluster)
		delete(w.versions, event.Cluster)
		return nil
	default:
		// The cluster's numbering of events has restarted, or registries show other namespaces of the
		// cluster.
		return w.expire(event.Cluster, "has changed")
	}
	if w.unlisted[event.Cluster] {
		return w.expire(event.Cluster, "is cached now")
	}
	c, found := w.clusters[event.Cluster]
	if !found || c.isHidden {
		return nil
	}
	if _, known := w.versions[event.Cluster]; known {
		// Without a version, the event is a part of the cluster's initial state. A later watch must
		// then begin with the whole initial state.
		w.versions[event.Cluster] = event.ResourceVersion
	}
	return w.writeChange(c.participant, event)
}

// writeChange writes an object's change as the request sees it: an object that the selectors begin to
// select is added, and an object that they no longer select is deleted.
func (w *cachedWatch) writeChange(p *participant, event *objectcache.Event) error {
	isOldSelected, oldErr := w.selects(p, event.Old)
	isNewSelected, newErr := w.selects(p, event.New)
	switch {
	case oldErr != nil || newErr != nil:
		return errors.Join(oldErr, newErr)
	case isNewSelected && isOldSelected:
		return w.out.write("MODIFIED", event.New, w.versions)
	case isNewSelected:
		return w.out.write("ADDED", event.New, w.versions)
	case isOldSelected:
		return w.out.write("DELETED", event.Old, w.versions)
	}
	return nil
}

// showCluster reviews the caller's permissions in a cluster that joined while the watch is open.
func (w *cachedWatch) showCluster(ctx context.Context, cluster string) {
	for _, p := range w.participants(w.kind.Snapshot()) {
		if p.cluster == cluster {
			isAllowed, err := w.mayRead(ctx, p, "watch")
			w.clusters[cluster] = watchedCluster{p.withoutObjects(), err != nil || !isAllowed}
		}
	}
}
