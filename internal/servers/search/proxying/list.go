package proxying

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"sync"

	"karmada.io/karmada/internal/domain/clusterjson"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/domain/combinedversion"
)

// list answers a list from the cache or from the members.
func (r *request) list() error {
	if r.isLive() {
		return r.listLive()
	}
	return r.listCached()
}

// listLive answers a list with the lists of the members, in the order of their names.
//
// Without a limit, the first pages of all clusters are read in parallel. With a limit, one cluster
// after another is read until the limit is reached.
func (r *request) listLive() error {
	position := combinedversion.Continue{}
	version := combinedversion.Parse(r.options.ResourceVersion)
	if token := r.options.Continue; token != "" {
		var err error
		if position, err = combinedversion.ParseContinue(token); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		version = combinedversion.Parse(position.Version)
	}
	l := &liveList{
		request: r, clusters: r.participants(r.kind.Snapshot()), position: position, version: version,
		versions: map[string]string{}, remaining: r.options.Limit, isLimited: r.options.Limit > 0,
	}
	if r.options.Continue != "" {
		// Every page has the version of the first one.
		for cluster, own := range version.Clusters() {
			l.versions[cluster] = own
		}
	}
	l.out = newListWriter(r)
	return l.run(r.req.Context())
}

// liveList is one list that the members answer.
type liveList struct {
	*request
	clusters []*participant
	position combinedversion.Continue
	// version is the version at which the members list. versions are the versions of the members
	// that answered.
	version  combinedversion.Version
	versions map[string]string
	// remaining is the number of objects that may still be written, if isLimited.
	remaining int64
	isLimited bool
	out       *listWriter
	// answered is the number of clusters that returned a list. firstErr is the error of the first
	// cluster that did not.
	answered int
	firstErr error
	// next is the position at which the next page begins.
	next combinedversion.Continue
}

func (l *liveList) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	streams := l.newStreams()
	defer func() {
		cancel()
		for _, s := range streams {
			s.stop()
		}
	}()
	if !l.isLimited {
		if err := l.acquireList(ctx); err != nil {
			return err
		}
		defer l.lists.Release(1)
		l.startAll(ctx, streams)
	}
	for i, s := range streams {
		if l.isLimited && l.remaining <= 0 {
			l.endPage(ctx, streams[i:])
			break
		}
		if err := l.copyStream(ctx, s); err != nil {
			return l.out.abort(err)
		}
	}
	if l.answered == 0 && l.firstErr != nil && l.position.Cluster == "" {
		return l.firstErr
	}
	token := ""
	if l.next.Cluster != "" {
		l.next.Version = combinedversion.New(l.versions).String()
		token = l.next.String()
	}
	return l.out.finish(combinedversion.New(l.versions), token)
}

// endPage determines where the next page begins, if it is not within a cluster already. The first
// page also needs the versions of the clusters whose objects are on later pages.
func (l *liveList) endPage(ctx context.Context, rest []*stream) {
	if l.next.Cluster == "" {
		l.next.Cluster = rest[0].cluster
	}
	if l.position.Cluster == "" {
		l.completeVersions(ctx, rest)
	}
}

// newStreams returns the streams of the clusters from the position of the list.
func (l *liveList) newStreams() []*stream {
	var streams []*stream
	for _, p := range l.clusters {
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

// startAll starts to read all streams, and waits for their first pages, so that the clusters that do
// not answer are known before the response begins.
func (l *liveList) startAll(ctx context.Context, streams []*stream) {
	for _, s := range streams {
		s.start(ctx)
	}
	for _, s := range streams {
		s.first(ctx)
	}
}

// acquireList waits until the list may read ahead.
func (l *liveList) acquireList(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.limits.Page)
	defer cancel()
	if l.lists.Acquire(ctx, 1) != nil {
		return apierrors.NewTooManyRequests("too many lists without a limit are in progress: try again later, or set a limit", 1)
	}
	return nil
}

// copyStream writes the objects of a cluster. An error fails the whole list.
func (l *liveList) copyStream(ctx context.Context, s *stream) error {
	for isFirst := true; !l.isLimited || l.remaining > 0; isFirst = false {
		limit := s.size
		if l.isLimited {
			limit = min(s.size, l.remaining)
		}
		p, err := s.next(ctx, limit)
		if err != nil && isFirst && !l.isContinued(s) {
			return l.omit(s, err)
		}
		if p == nil || err != nil {
			// If there is an error, a part of the objects of the cluster is already in the response, or
			// on an earlier page.
			return err
		}
		if isFirst {
			l.addAnswer(s, p)
		}
		written, err := l.out.writePage(s.participant, p)
		if err != nil && isFirst && written == 0 {
			return l.omit(s, newUnavailable("cluster %q: reading its list: %v", s.cluster, err))
		}
		if err != nil {
			return err
		}
		l.remaining -= written
		if l.isLimited && l.remaining <= 0 && p.Token != "" {
			l.next.Cluster, l.next.Token = s.cluster, p.Token
		}
	}
	return nil
}

// addAnswer records that a cluster returned its first page.
func (l *liveList) addAnswer(s *stream, p *clusterjson.Page) {
	l.answered++
	if _, known := l.versions[s.cluster]; !known {
		l.versions[s.cluster] = p.ResourceVersion
	}
}

// isContinued reports whether an earlier page has objects of the cluster.
func (l *liveList) isContinued(s *stream) bool {
	return l.position.Token != "" && l.position.Cluster == s.cluster
}

// omit handles the error of a cluster without objects in the response. In strict mode, or if the
// error concerns the request, the list fails.
func (l *liveList) omit(s *stream, err error) error {
	if l.isStrict || failsRequest(err) {
		return err
	}
	if l.position.Cluster != "" && l.version.For(s.cluster) != "" {
		// The version of the list, from which the client will watch, says that the client has the
		// objects of the cluster.
		return err
	}
	if l.firstErr == nil || apierrors.IsForbidden(l.firstErr) {
		l.firstErr = err
	}
	l.warnings.add(s.cluster, "its objects are omitted: "+reasonOf(s.cluster, err))
	return nil
}

// completeVersions adds the versions of clusters whose objects are on later pages. The later pages
// list these clusters at these versions.
func (l *liveList) completeVersions(ctx context.Context, streams []*stream) {
	versions := make([]string, len(streams))
	var lists sync.WaitGroup
	for i, s := range streams {
		if l.next.Cluster == s.cluster && l.next.Token != "" {
			continue
		}
		lists.Go(func() {
			if p, err := s.fetchPage(ctx, 1, ""); err == nil {
				versions[i] = p.ResourceVersion
			}
		})
	}
	lists.Wait()
	for i, s := range streams {
		if versions[i] != "" {
			l.versions[s.cluster] = versions[i]
		}
	}
}

// stream reads the pages of one cluster.
type stream struct {
	*request
	*participant
	// version is the version of the first page. token is the continue token of the next page.
	version, token string
	// size is the number of objects of a page.
	size   int64
	isDone bool
	// pages has the pages that a goroutine reads ahead. It is nil if pages are read on demand.
	pages  chan pageResult
	peeked *pageResult
	ended  chan struct{}
}

type pageResult struct {
	page *clusterjson.Page
	err  error
}

// start begins to read ahead.
func (s *stream) start(ctx context.Context) {
	s.pages, s.ended = make(chan pageResult), make(chan struct{})
	go func() {
		defer close(s.ended)
		defer close(s.pages)
		for {
			p, err := s.nextPage(ctx, s.size)
			select {
			case s.pages <- pageResult{p, err}:
			case <-ctx.Done():
				return
			}
			if p == nil || err != nil {
				return
			}
		}
	}()
}

// stop waits for the end of reading ahead. The context of start must have ended.
func (s *stream) stop() {
	if s.ended != nil {
		<-s.ended
	}
}

// first waits for the first page, which next returns later.
func (s *stream) first(ctx context.Context) {
	p, err := s.receive(ctx)
	s.peeked = &pageResult{p, err}
}

// next returns the next page, or nil after the last one.
func (s *stream) next(ctx context.Context, limit int64) (*clusterjson.Page, error) {
	if s.pages == nil {
		return s.nextPage(ctx, limit)
	}
	if s.peeked != nil {
		result := *s.peeked
		s.peeked = nil
		return result.page, result.err
	}
	return s.receive(ctx)
}

func (s *stream) receive(ctx context.Context) (*clusterjson.Page, error) {
	select {
	case result := <-s.pages:
		return result.page, result.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// nextPage reads the next page. It returns nil after the last one.
func (s *stream) nextPage(ctx context.Context, limit int64) (*clusterjson.Page, error) {
	if s.isDone {
		return nil, nil
	}
	p, err := s.fetchPage(ctx, limit, s.token)
	if err != nil {
		return nil, err
	}
	s.token, s.isDone = p.Token, p.Token == ""
	return p, nil
}

// fetchPage reads a page of the cluster. If the page is too large, it reads fewer objects.
func (s *stream) fetchPage(ctx context.Context, limit int64, token string) (*clusterjson.Page, error) {
	query := s.listQuery(token)
	for {
		query.Set("limit", strconv.FormatInt(limit, 10))
		body, err := s.fetch(ctx, s.cluster, s.collectionPath(s.participant.namespace), query)
		var tooLarge *tooLargeError
		if errors.As(err, &tooLarge) {
			if limit > 1 {
				limit /= 2
				continue
			}
			err = tooLarge.StatusError
		}
		if err != nil {
			return nil, err
		}
		p, err := clusterjson.ParsePage(body)
		if err != nil {
			return nil, newUnavailable("cluster %q: reading its list: %v", s.cluster, err)
		}
		return p, nil
	}
}

// listQuery returns the query of a page of a cluster.
func (s *stream) listQuery(token string) url.Values {
	query := s.req.URL.Query()
	for _, name := range []string{"continue", "watch", "resourceVersion"} {
		query.Del(name)
	}
	if s.only != nil {
		// The namespace of a row is in its object.
		query.Del("includeObject")
	}
	switch {
	case token != "":
		query.Set("continue", token)
		query.Del("resourceVersionMatch")
	case s.version == "":
		query.Del("resourceVersionMatch")
	default:
		query.Set("resourceVersion", s.version)
		if s.options.Limit == 0 && s.options.Continue == "" && s.options.ResourceVersionMatch == "" {
			// Without this, the limit of the page would ask for exactly this version.
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
		}
	}
	return query
}
