package query

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/index"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// watchLifetime is how long a watch uses a decision about the caller's permissions.
const watchLifetime = 10 * time.Second

// serveWatch sends the current matches and then their changes, until the client, the timeout or an
// expired log ends the watch. An object is evaluated only when it changes. Therefore a query for ages
// does not find objects that begin to match only because time passes.
func (h *Handler) serveWatch(w http.ResponseWriter, req *http.Request, p parameters, caller user.Info) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	if p.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, p.timeout)
		defer stop()
	}
	found := &warnings{caller: caller, isNamespaced: true}
	h.readStates(p.query, found)
	watcher := &watcher{
		handler: h, query: p.query, access: h.newAccess(caller, watchLifetime),
		events: make(chan event), followed: map[*objectcache.Kind]bool{}, omitted: map[target]bool{},
	}
	followers := watcher.start()
	watcher.reviewInitial(ctx, found)
	found.addTo(w.Header())
	out := h.newEventWriter(w, p.asTable)
	if err := out.open(); err != nil {
		return
	}
	if err := watcher.writeInitial(ctx, out); err != nil {
		out.fail(ctx, err)
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, follow := range followers {
		running.Go(func() { follow(ctx) })
	}
	running.Go(func() { watcher.followNewKinds(ctx, &running) })
	watcher.writeEvents(ctx, out)
}

// event is a match's change, or the error that ends the watch.
type event struct {
	eventType watch.EventType
	match     index.Match
	stale     *states
	err       error
}

// watcher watches the kinds whose objects can match.
type watcher struct {
	handler *Handler
	query   *searchquery.Query
	access  *access
	events  chan event

	// followed contains the watched kinds. Until followNewKinds runs, only the request's goroutine uses
	// it; afterwards, only followNewKinds does.
	followed map[*objectcache.Kind]bool
	// kindsChanged is closed when the cache's kinds change.
	kindsChanged <-chan struct{}
	// sources contains the objects at the start. It is released after their matches are written.
	sources index.Sources
	// omitted contains the targets whose review failed before all initial matches were written, so that
	// the client does not have their objects. It does not change after writeInitial.
	omitted map[target]bool
}

// canMatch reports whether objects of the kind can match.
func (w *watcher) canMatch(kind *objectcache.Kind) bool {
	gvk := kind.GroupVersionKind()
	return w.query.CanMatch(searchquery.Known{AnyCluster: true, APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind})
}

// start takes snapshots of all kinds, and returns the functions that watch these kinds.
func (w *watcher) start() []func(context.Context) {
	w.kindsChanged = w.handler.cache.Changed()
	var followers []func(context.Context)
	for _, kind := range w.handler.cache.Kinds() {
		if !w.canMatch(kind) {
			continue
		}
		w.followed[kind] = true
		snapshot := kind.Snapshot()
		for _, objects := range snapshot.Clusters() {
			state, _, _ := objects.State()
			if state != objectcache.Waiting && w.query.CanMatch(index.KnownOf(objects.Source())) {
				w.sources = append(w.sources, objects)
			}
		}
		cursor := kind.Follow(snapshot.Position())
		followers = append(followers, func(ctx context.Context) { w.follow(ctx, kind, cursor) })
	}
	slices.SortStableFunc(w.sources, func(a, b *objectcache.ClusterObjects) int {
		return strings.Compare(a.Source().Cluster, b.Source().Cluster)
	})
	return followers
}

// reviewInitial reviews the permissions for all namespaces of all sources, including those without
// objects, so that warnings can be sent before the first event.
func (w *watcher) reviewInitial(ctx context.Context, found *warnings) {
	sources := make([]objectcache.Source, 0, len(w.sources))
	for _, objects := range w.sources {
		sources = append(sources, *objects.Source())
	}
	for i, d := range w.access.reviewAndWarn(ctx, sources, found) {
		if d.err != nil {
			w.omitted[target{source: sources[i]}] = true
		}
	}
}

// writeInitial sends the matches in the snapshots, and releases the snapshots.
func (w *watcher) writeInitial(ctx context.Context, out *eventWriter) error {
	defer func() { w.sources = nil }()
	stale := newStates()
	for _, objects := range w.sources {
		stale.set(objects)
	}
	var failure error
	searcher := readableSearcher{Searcher: w.sources, access: w.access}
	err := index.Matches(ctx, searcher, w.query, index.Cursor{}, w.handler.now(), func(m index.Match) bool {
		if w.canReadInitial(ctx, m.Object) {
			failure = out.write(watch.Added, stale.itemOf(m))
		}
		return failure == nil
	})
	if failure != nil {
		return failure
	}
	return err
}

// writeEvents sends the changes until the watch ends.
func (w *watcher) writeEvents(ctx context.Context, out *eventWriter) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.events:
			if e.err != nil {
				out.fail(ctx, e.err)
				return
			}
			if err := out.write(e.eventType, e.stale.itemOf(e.match)); err != nil {
				return
			}
		}
	}
}

// followNewKinds watches kinds that are added during the watch.
func (w *watcher) followNewKinds(ctx context.Context, running *sync.WaitGroup) {
	changed := w.kindsChanged
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		changed = w.handler.cache.Changed()
		current := map[*objectcache.Kind]bool{}
		for _, kind := range w.handler.cache.Kinds() {
			current[kind] = true
			if w.followed[kind] || !w.canMatch(kind) {
				continue
			}
			w.followed[kind] = true
			// Without versions, the cursor begins with all of the kind's objects.
			cursor, err := kind.FollowFrom(nil)
			if err != nil {
				w.send(ctx, event{err: err})
				return
			}
			running.Go(func() { w.follow(ctx, kind, cursor) })
		}
		for kind := range w.followed {
			if !current[kind] {
				delete(w.followed, kind)
			}
		}
	}
}

// follow sends one kind's changes until ctx ends, the kind is removed, or its log expires.
func (w *watcher) follow(ctx context.Context, kind *objectcache.Kind, cursor *objectcache.Cursor) {
	for {
		changes, err := cursor.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && isRemoved(kind):
			return // the deletions of all objects have been sent
		case err != nil:
			w.send(ctx, event{err: err})
			return
		}
		if err := w.reviewChanges(ctx, changes); err != nil {
			w.send(ctx, event{err: err})
			return
		}
		stale := w.statesOf(kind)
		for _, change := range changes {
			e, isMatch := w.eventOf(ctx, change)
			if e.err == nil && !isMatch {
				continue
			}
			e.stale = stale
			if !w.send(ctx, e) {
				return
			}
		}
	}
}

func isRemoved(kind *objectcache.Kind) bool {
	select {
	case <-kind.Removed():
		return true
	default:
		return false
	}
}

func (w *watcher) statesOf(kind *objectcache.Kind) *states {
	stale := newStates()
	for _, objects := range kind.Snapshot().Clusters() {
		stale.set(objects)
	}
	return stale
}

// send passes an event to the writer. It reports whether the watch continues.
func (w *watcher) send(ctx context.Context, e event) bool {
	select {
	case <-ctx.Done():
		return false
	case w.events <- e:
		return e.err == nil
	}
}

// eventOf returns the event for a change: an object that begins to match is added, and an object that
// no longer matches is deleted.
func (w *watcher) eventOf(ctx context.Context, change objectcache.Event) (event, bool) {
	before, matchedBefore, err := w.match(ctx, change.Old)
	if err != nil {
		return event{err: err}, false
	}
	after, matchesNow, err := w.match(ctx, change.New)
	switch {
	case err != nil:
		return event{err: err}, false
	case matchesNow && matchedBefore:
		return event{eventType: watch.Modified, match: after}, true
	case matchesNow:
		return event{eventType: watch.Added, match: after}, true
	case matchedBefore:
		return event{eventType: watch.Deleted, match: before}, true
	}
	return event{}, false
}

// match compares the object with the query if the caller may read the object. object may be nil.
func (w *watcher) match(ctx context.Context, object *objectcache.Object) (index.Match, bool, error) {
	if object == nil || !index.CanMatch(w.query, object) {
		return index.Match{}, false, nil
	}
	if allowed, err := w.canRead(ctx, object); err != nil || !allowed {
		return index.Match{}, false, err
	}
	content, _, err := index.Decode(object, nil)
	if err != nil {
		return index.Match{}, false, err
	}
	reasons, matches := w.query.Match(&searchquery.Document{Cluster: object.Source().Cluster, Object: content, Now: w.handler.now()})
	return index.Match{Object: object, Reasons: reasons}, matches, nil
}

// watchError returns the error that ends a watch, or nil if the request has ended.
func watchError(err error) apierrors.APIStatus {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return statusOf(err)
}
