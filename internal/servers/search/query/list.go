package query

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/index"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// reviewChunk is the number of matches whose permissions are reviewed together.
const reviewChunk = 256

// requestLifetime is how long a request for a page uses a decision.
const requestLifetime = time.Minute

// serveList returns one page of matches.
func (h *Handler) serveList(w http.ResponseWriter, req *http.Request, p parameters, caller user.Info) {
	ctx := req.Context()
	found := &warnings{caller: caller, isNamespaced: true}
	states, sources := h.readStates(p.query, found)
	collected := &page{ctx: ctx, limit: p.limit, states: states, access: h.newAccess(caller, requestLifetime)}
	collected.access.reviewAndWarn(ctx, sources, found)
	searcher := readableSearcher{Searcher: h.searcher, access: collected.access}
	err := index.Matches(ctx, searcher, p.query, p.after, h.now(), collected.add)
	if err == nil {
		collected.flush()
		err = ctx.Err()
	}
	if err != nil {
		writeError(ctx, w, err)
		return
	}
	list := collected.list(p.query)
	found.addTo(w.Header())
	if p.asTable {
		writeJSON(ctx, w, http.StatusOK, tableOf(list, h.now(), true))
		return
	}
	writeJSON(ctx, w, http.StatusOK, list)
}

// readableSearcher omits candidates that the caller may not read, so that they are not decoded.
type readableSearcher struct {
	index.Searcher
	access *access
}

// Candidates implements index.Searcher.
func (r readableSearcher) Candidates(ctx context.Context, q *searchquery.Query, after index.Cursor,
	yield func(*objectcache.Object) bool) error {
	return r.Searcher.Candidates(ctx, q, after, func(object *objectcache.Object) bool {
		if d, isKnown := r.access.known(object); isKnown && !d.allowed {
			return true
		}
		return yield(object)
	})
}

// page collects the matches that the caller may read.
type page struct {
	ctx    context.Context //nolint:containedctx // It is the context of the request, as long as the page.
	limit  int
	states *states
	access *access

	// pending contains the matches for which the permissions have not been reviewed yet.
	pending []pendingMatch
	items   []searchv1alpha1.SearchResult
	// last is the position of the page's last item.
	last index.Cursor
	// hasMore is true if there is a match after the page.
	hasMore bool
}

type pendingMatch struct {
	object *objectcache.Object
	item   searchv1alpha1.SearchResult
}

// add adds a match. It reports whether the page needs more matches.
func (p *page) add(m index.Match) bool {
	p.pending = append(p.pending, pendingMatch{m.Object, p.states.itemOf(m)})
	// One match beyond the page shows that there are more.
	if len(p.pending) < min(reviewChunk, p.limit+1-len(p.items)) {
		return true
	}
	p.flush()
	return !p.hasMore && p.ctx.Err() == nil
}

// flush moves those pending matches to the page that the caller may read.
func (p *page) flush() {
	objects := make([]*objectcache.Object, 0, len(p.pending))
	for _, pending := range p.pending {
		objects = append(objects, pending.object)
	}
	p.access.review(p.ctx, objects)
	for _, pending := range p.pending {
		if d, _ := p.access.known(pending.object); !d.allowed {
			continue
		}
		if len(p.items) == p.limit {
			p.hasMore = true
			break
		}
		p.items = append(p.items, pending.item)
		p.last = index.CursorOf(pending.object)
	}
	p.pending = p.pending[:0]
}

func (p *page) list(q *searchquery.Query) *searchv1alpha1.SearchResultList {
	list := &searchv1alpha1.SearchResultList{Items: p.items}
	list.Kind, list.APIVersion = searchv1alpha1.SearchResultListKind, searchv1alpha1.GroupVersion.String()
	if list.Items == nil {
		list.Items = []searchv1alpha1.SearchResult{}
	}
	if p.hasMore {
		list.Continue = newToken(q, p.last)
	}
	return list
}

// states maps each stale source to the time since when it has been stale.
type states struct {
	staleSince map[objectcache.Source]metav1.Time
}

func newStates() *states { return &states{staleSince: map[objectcache.Source]metav1.Time{}} }

// readStates reads the states of all sources that can have matches, and adds warnings about them. It
// returns the sources that have been listed, including those without objects.
func (h *Handler) readStates(q *searchquery.Query, found *warnings) (s *states, listed []objectcache.Source) {
	s = newStates()
	canMatch := false
	outdated := map[outdatedKey][]*objectcache.ClusterObjects{}
	for _, kind := range h.cache.Kinds() {
		for _, objects := range kind.Snapshot().Clusters() {
			if !q.CanMatch(index.KnownOf(objects.Source())) {
				continue
			}
			canMatch = true
			s.set(objects)
			state, _, _ := objects.State()
			if state != objectcache.Waiting {
				listed = append(listed, *objects.Source())
			}
			if state != objectcache.Current {
				key := outdatedKey{objects.Source().Cluster, state}
				outdated[key] = append(outdated[key], objects)
			}
		}
	}
	for _, sources := range outdated {
		found.addOutdated(sources)
	}
	if !canMatch {
		found.add("no cached kind of any cluster can match this query: check kind, group and cluster; ResourceRegistries select what is cached")
	}
	return s, listed
}

// outdatedKey groups outdated sources for warnings, because a cluster that is not reachable has many.
type outdatedKey struct {
	cluster string
	state   objectcache.State
}

func (s *states) set(objects *objectcache.ClusterObjects) {
	if state, since, _ := objects.State(); state == objectcache.Stale {
		s.staleSince[*objects.Source()] = metav1.NewTime(since)
	}
}

// itemOf returns the search result for a match.
func (s *states) itemOf(m index.Match) searchv1alpha1.SearchResult {
	source := m.Object.Source()
	item := searchv1alpha1.SearchResult{
		Kind: source.Kind.Kind, APIVersion: source.Kind.GroupVersion().String(), Cluster: source.Cluster,
		Namespace: m.Object.Namespace(), Name: m.Object.Name(), UID: m.Object.UID(),
	}
	if created := m.Object.Created(); !created.IsZero() {
		item.CreationTimestamp = &metav1.Time{Time: created}
	}
	for _, reason := range m.Reasons {
		item.Matches = append(item.Matches, searchv1alpha1.SearchMatch{Field: reason.Field, Value: reason.Value})
	}
	if since, isStale := s.staleSince[*source]; isStale {
		item.StaleSince = &since
	}
	return item
}
