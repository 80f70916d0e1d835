package proxying

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

func (r *request) newListWriter() *fanout.ListWriter {
	return &fanout.ListWriter{
		Style: style, Response: r.w, Warnings: r.warnings, HeldBytes: r.limits.HeldBytes, IsYAML: r.format.IsYAML,
		MaxYAMLBytes: int(r.limits.PageBytes),
	}
}

// list serves a list from the cache or from the members.
func (r *request) list() error {
	if r.isLive() {
		return r.listLive()
	}
	return r.listCached()
}

// listCached serves a list from the cache.
func (r *request) listCached() error {
	snapshot := r.awaitListed(r.req.Context())
	clusters, err := r.readable(r.req.Context(), r.participants(snapshot), "list")
	if err != nil {
		return err
	}
	out, versions := r.newListWriter(), map[string]string{}
	kind := r.kind.GroupVersionKind()
	first := &fanout.Page{Kind: kind.Kind + "List", APIVersion: kind.GroupVersion().String()}
	if r.format.IsPartial {
		first = &fanout.Page{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}
	}
	if r.format.IsPartial || len(snapshot.Clusters()) > 0 {
		if err := out.Start(first); err != nil {
			return err
		}
	}
	for _, p := range clusters {
		if version := p.ResourceVersion(); version != "" {
			versions[p.cluster] = version
		}
		if err := r.writeCachedObjects(out, p); err != nil {
			return out.Abort(err)
		}
	}
	return out.Abort(out.Finish(combinedversion.New(versions).String(), ""))
}

// writeCachedObjects writes a cluster's selected objects.
func (r *request) writeCachedObjects(out *fanout.ListWriter, p *participant) error {
	var text, partial []byte
	for object := range p.All(p.namespace) {
		isSelected, err := r.selects(p, object)
		if err != nil {
			return err
		}
		if !isSelected {
			continue
		}
		if text, err = object.AppendJSON(text[:0]); err != nil {
			return err
		}
		item := text
		if r.format.IsPartial {
			if partial, err = fanout.ToPartial(partial[:0], text); err != nil {
				return err
			}
			item = partial
		}
		if err := out.WriteItem(item); err != nil {
			return err
		}
	}
	return r.req.Context().Err()
}

// selects reports whether the request selects the participant's object. It returns false if object is
// nil.
func (r *request) selects(p *participant, object *objectcache.Object) (bool, error) {
	selector := r.options.LabelSelector
	if object == nil || p.namespace != "" && object.Namespace() != p.namespace || !p.includes(object.Namespace()) ||
		selector != nil && !selector.Empty() && !selector.Matches(object.Labels()) {
		return false, nil
	}
	return r.fields.Matches(object.Namespace(), object.Name(), func() ([]byte, error) { return object.AppendJSON(nil) })
}

// listLive serves a list by merging the members' lists, sorted by cluster name.
//
// Without a limit, it reads the first pages of all clusters in parallel. With a limit, it reads one
// cluster after another until the limit is reached.
func (r *request) listLive() error {
	l := &liveList{
		request: r, version: combinedversion.Parse(r.options.ResourceVersion), versions: map[string]string{},
		remaining: r.options.Limit, isLimited: r.options.Limit > 0, out: r.newListWriter(),
	}
	if token := r.options.Continue; token != "" {
		var err error
		if l.position, err = combinedversion.ParseContinue(token); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		// Every page has the first page's version.
		l.version = combinedversion.Parse(l.position.Version)
		maps.Copy(l.versions, l.version.Clusters())
	}
	return l.run(r.req.Context())
}

// liveList is a list that the members serve.
type liveList struct {
	*request
	out      *fanout.ListWriter
	position combinedversion.Continue
	// version is the version at which the members list. versions are the versions of the members that
	// returned a list.
	version  combinedversion.Version
	versions map[string]string
	// remaining is the number of objects that may still be written. It is used only if isLimited is
	// true.
	remaining int64
	isLimited bool
	// firstErr is the error of the first cluster that returned no list.
	firstErr error
	// next is the position at which the next page begins.
	next combinedversion.Continue
}

func (l *liveList) run(ctx context.Context) error {
	streams := l.newStreams()
	if !l.isLimited {
		release, err := l.acquireList(ctx)
		if err != nil {
			return err
		}
		defer release()
		if streams, err = l.readFirstPages(ctx, streams); err != nil {
			return err
		}
	}
	hasList := false
	for i, s := range streams {
		if l.isLimited && l.remaining <= 0 && l.next.Cluster == "" {
			l.next.Cluster = s.cluster
		}
		if l.next.Cluster != "" {
			if l.position.Cluster == "" {
				l.completeVersions(ctx, streams[i:])
			}
			break
		}
		isListed, err := l.copyStream(ctx, s)
		if err != nil {
			return l.out.Abort(err)
		}
		hasList = hasList || isListed
	}
	if !hasList && l.firstErr != nil && l.position.Cluster == "" {
		return l.firstErr
	}
	version, token := combinedversion.New(l.versions).String(), ""
	if l.next.Cluster != "" {
		l.next.Version = version
		token = l.next.String()
	}
	return l.out.Abort(l.out.Finish(version, token))
}

// newStreams returns the clusters' streams, beginning at the list's position.
func (l *liveList) newStreams() []*stream {
	var streams []*stream
	for _, p := range l.participants(l.kind.Snapshot()) {
		if p.cluster < l.position.Cluster {
			continue
		}
		s := &stream{request: l.request, participant: p, version: l.version.For(p.cluster)}
		if p.cluster == l.position.Cluster {
			s.token = l.position.Token
		}
		streams = append(streams, s)
	}
	for _, s := range streams {
		s.size = max(50, min(500, l.limits.PageObjects/int64(len(streams))))
	}
	return streams
}

// acquireList waits until the list may read all clusters' pages. release must be called afterwards.
func (l *liveList) acquireList(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, l.limits.Page)
	defer cancel()
	if l.lists.Acquire(ctx, 1) != nil {
		return nil, apierrors.NewTooManyRequests("too many lists without a limit are in progress: try again later, or set a limit", 1)
	}
	return func() { l.lists.Release(1) }, nil
}

// readFirstPages reads all clusters' first pages, so that it is known before the response begins which
// clusters do not respond. It returns the other clusters' streams.
func (l *liveList) readFirstPages(ctx context.Context, streams []*stream) (kept []*stream, err error) {
	errs := make([]error, len(streams))
	fanout.InParallel(len(streams), func(i int) { streams[i].first, errs[i] = streams[i].nextPage(ctx, streams[i].size) })
	for i, s := range streams {
		if errs[i] == nil {
			kept = append(kept, s)
		} else if err := l.omit(s, errs[i]); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// copyStream writes a cluster's objects. isListed reports whether the cluster returned a list. An error
// fails the whole list.
func (l *liveList) copyStream(ctx context.Context, s *stream) (isListed bool, err error) {
	for !l.isLimited || l.remaining > 0 {
		limit := s.size
		if l.isLimited {
			limit = min(s.size, l.remaining)
		}
		p, err := s.nextPage(ctx, limit)
		var written int64
		if err == nil && p != nil {
			if written, err = l.out.WritePage(p, s.filter()); errors.Is(err, fanout.ErrMixedFormats) {
				err = fanout.NewUnavailableError("cluster %q: reading its list: %v", s.cluster, err)
			}
		}
		switch {
		case err != nil && !isListed && written == 0:
			return false, l.omit(s, err)
		case err != nil || p == nil:
			// Return the error, because a part of the cluster's objects is already in the response.
			return isListed, err
		case !isListed && l.versions[s.cluster] == "":
			l.versions[s.cluster] = p.ResourceVersion
		}
		isListed = true
		l.remaining -= written
		if l.isLimited && l.remaining <= 0 && p.Continue != "" {
			l.next.Cluster, l.next.Token = s.cluster, p.Continue
		}
	}
	return isListed, nil
}

// omit handles an error of a cluster that has no objects in the response yet. In strict mode, or if the
// error concerns the whole request, the list fails.
func (l *liveList) omit(s *stream, err error) error {
	isContinued := l.position.Cluster == s.cluster && l.position.Token != ""
	// If the list's version contains a version of this cluster, the client will watch from that
	// version, because it implies that the client has the cluster's objects.
	isExpected := l.position.Cluster != "" && l.version.For(s.cluster) != ""
	switch {
	case l.isStrict || isContinued || isExpected || failsRequest(err):
		return err
	case l.out.IsSent() && l.isLimited:
		// It is too late for a warning, so the next page begins with this cluster.
		l.next.Cluster = s.cluster
		return nil
	case l.out.IsSent():
		return err
	case l.firstErr == nil || apierrors.IsForbidden(l.firstErr):
		l.firstErr = err
	}
	l.warn(s.cluster, "its objects are omitted: %s", reasonOf(s.cluster, err))
	return nil
}

// completeVersions adds the versions of clusters whose objects are on later pages. The later pages list
// these clusters at these versions.
func (l *liveList) completeVersions(ctx context.Context, streams []*stream) {
	versions := make([]string, len(streams))
	fanout.InParallel(len(streams), func(i int) {
		if s := streams[i]; l.next.Cluster != s.cluster || l.next.Token == "" {
			if p, err := s.fetchPage(ctx, 1, ""); err == nil {
				versions[i] = p.ResourceVersion
			}
		}
	})
	for i, s := range streams {
		if versions[i] != "" {
			l.versions[s.cluster] = versions[i]
		}
	}
}

// stream reads one cluster's pages.
type stream struct {
	*request
	*participant
	// version is the first page's version. token is the next page's continue token.
	version, token string
	// size is the number of objects to request for each page.
	size   int64
	isDone bool
	// first is the first page if it was read in advance.
	first *fanout.Page
}

// filter returns a function that accepts the stream's namespaces, or nil if the stream includes all
// namespaces.
func (s *stream) filter() func(namespace string) bool {
	if s.only == nil {
		return nil
	}
	return s.includes
}

// nextPage returns the next page, or nil after the last one.
func (s *stream) nextPage(ctx context.Context, limit int64) (*fanout.Page, error) {
	if p := s.first; p != nil {
		s.first = nil
		return p, nil
	}
	if s.isDone {
		return nil, nil
	}
	p, err := s.fetchPage(ctx, limit, s.token)
	if err != nil {
		return nil, err
	}
	s.token, s.isDone = p.Continue, p.Continue == ""
	return p, nil
}

// fetchPage reads a page from the cluster. If the page is too large, it retries with fewer objects.
func (s *stream) fetchPage(ctx context.Context, limit int64, token string) (*fanout.Page, error) {
	query := s.listQuery(token)
	for {
		query.Set("limit", strconv.FormatInt(limit, 10))
		body, err := s.fetch(ctx, s.cluster, s.collectionPath(s.participant), query)
		var tooLarge *tooLargeError
		switch {
		case errors.As(err, &tooLarge) && limit > 1:
			limit /= 2
			continue
		case errors.As(err, &tooLarge):
			return nil, tooLarge.StatusError
		case err != nil:
			return nil, err
		}
		p, err := style.ParsePage(s.cluster, body)
		if err != nil {
			return nil, fanout.NewUnavailableError("cluster %q: reading its list: %v", s.cluster, err)
		}
		return p, nil
	}
}

// listQuery returns a cluster's list query for one page.
func (s *stream) listQuery(token string) url.Values {
	query := s.memberQuery(s.participant)
	switch {
	case token != "":
		query.Set("continue", token)
		query.Del("resourceVersionMatch")
	case s.version == "":
		query.Del("resourceVersionMatch")
	default:
		query.Set("resourceVersion", s.version)
		if s.options.Limit == 0 && s.options.Continue == "" && s.options.ResourceVersionMatch == "" {
			// Without this parameter, the limit would make the member list at exactly this version.
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
		}
	}
	return query
}
