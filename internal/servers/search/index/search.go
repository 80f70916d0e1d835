package index

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Sizes of the pages that a search reads. Each page requires a pass over all hits, so the size
// increases.
const (
	firstPageSize = 1024
	maxPageSize   = 16 << 10
)

// maxExpansion is the maximum number of terms that a pattern may match. A pattern that matches more
// terms does not narrow down the search.
const maxExpansion = 10_000

// maxScannedTerms is the maximum number of terms that are compared with a pattern, which takes about
// two seconds. A pattern that needs more comparisons does not narrow down the search.
const maxScannedTerms = 4 << 20

// termsPerQuery is the number of terms that bleve looks up at once.
const termsPerQuery = 128

// Candidates implements Searcher.
func (f *FullText) Candidates(ctx context.Context, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool) error {
	sources := possibleSources(f.options.Cache, q)
	// Determine the indexed sources first, so that the following reads of the index see everything that
	// the feed had stored before.
	indexed, others := f.split(sources)
	condition := q.Condition()
	if len(indexed) == 0 || condition.IsTrue() {
		return sources.Candidates(ctx, q, after, yield)
	}
	narrowed, err := f.newQuery(ctx, condition)
	if err != nil {
		return fmt.Errorf("searching the full-text index: %w", err)
	}
	if narrowed == nil {
		return sources.Candidates(ctx, q, after, yield)
	}
	var failure error
	ordered := func(search func(func(*objectcache.Object) bool) error) iter.Seq[*objectcache.Object] {
		return func(yield func(*objectcache.Object) bool) {
			if err := search(yield); err != nil {
				failure = err
			}
		}
	}
	fromIndex := ordered(func(yield func(*objectcache.Object) bool) error {
		return f.indexed(ctx, indexed, narrowed, after, yield)
	})
	fromCache := ordered(func(yield func(*objectcache.Object) bool) error { return others.Candidates(ctx, q, after, yield) })
	for object := range merge(fromIndex, fromCache) {
		if failure != nil || CanMatch(q, object) && !yield(object) {
			return failure
		}
	}
	return failure
}

// split returns the sources that are indexed, and the others.
func (f *FullText) split(sources Sources) (indexed, others Sources) {
	progress := f.progress.Load()
	for _, objects := range sources {
		if progress != nil && (*progress).IsEqual(*objects.Source()) {
			indexed = append(indexed, objects)
		} else {
			others = append(others, objects)
		}
	}
	return indexed, others
}

// indexed yields the sources' objects whose documents match, in order. It first searches one cluster,
// and searches more clusters at once as long as there are few hits, because bleve visits all hits
// before it returns a page.
func (f *FullText) indexed(ctx context.Context, sources Sources, narrowed query.Query, after Cursor,
	yield func(*objectcache.Object) bool) error {
	clusters := slices.Collect(sources.byCluster(after))
	for count := 1; len(clusters) > 0; {
		count = min(count, len(clusters))
		total, more, err := f.searchSources(ctx, slices.Concat(clusters[:count]...), narrowed, after, yield)
		if err != nil || !more {
			return err
		}
		clusters = clusters[count:]
		if count *= 4; total > firstPageSize {
			count = 1
		}
	}
	return nil
}

// searchSources yields the sources' objects whose documents match, in order, with a single query.
func (f *FullText) searchSources(
	ctx context.Context, sources Sources, narrowed query.Query, after Cursor, yield func(*objectcache.Object) bool,
) (total uint64, more bool, err error) {
	bySource := map[Cursor]*objectcache.ClusterObjects{}
	terms := make([]string, 0, len(sources))
	for _, objects := range sources {
		source := objects.Source()
		bySource[Cursor{Cluster: source.Cluster, Kind: source.Kind}] = objects
		terms = append(terms, sourceTerm(source))
	}
	last := after.key()
	return f.eachHit(ctx, hits{
		query: bleve.NewConjunctionQuery(termsQuery(sourceField, terms...), narrowed),
		sort:  []string{keyField}, after: []string{last}, pageSize: firstPageSize,
	}, func(hit *search.DocumentMatch) bool {
		key := hit.Sort[0]
		position, ok := parseKey(key)
		objects := bySource[Cursor{Cluster: position.Cluster, Kind: position.Kind}]
		// An object that was just recreated has two documents.
		if !ok || objects == nil || key == last {
			return true
		}
		last = key
		object := objects.Get(position.Namespace, position.Name)
		return object == nil || yield(object)
	})
}

// hits describes a search for documents that are ordered by the sort fields.
type hits struct {
	query query.Query
	sort  []string
	// after contains the sort fields' values after which the search starts. Nil means the first
	// document.
	after    []string
	pageSize int
}

// eachHit calls yield for each hit in order until yield returns false. It returns the number of hits,
// and whether yield returned true for all of them.
func (f *FullText) eachHit(ctx context.Context, h hits, yield func(*search.DocumentMatch) bool) (total uint64, more bool, err error) {
	for {
		request := bleve.NewSearchRequestOptions(h.query, h.pageSize, 0, false)
		request.Score = bleve.ScoreNone
		request.SortBy(h.sort)
		request.SearchAfter = h.after
		page, err := f.index.SearchInContext(ctx, request)
		if err != nil {
			return 0, false, fmt.Errorf("searching the full-text index: %w", err)
		}
		for _, hit := range page.Hits {
			if !yield(hit) {
				return page.Total, false, nil
			}
			if err := ctx.Err(); err != nil {
				return page.Total, false, err
			}
		}
		if len(page.Hits) < h.pageSize {
			return page.Total, true, nil
		}
		h.after = page.Hits[len(page.Hits)-1].Sort
		h.pageSize = min(2*h.pageSize, maxPageSize)
	}
}

// newQuery returns a query for the documents that fulfill the condition, or nil if the index cannot
// narrow down the search.
func (f *FullText) newQuery(ctx context.Context, c searchquery.Condition) (query.Query, error) {
	switch {
	case len(c.All) > 0:
		return f.newConjunction(ctx, c.All)
	case len(c.Any) > 0:
		return f.newDisjunction(ctx, c.Any)
	case c.Fact != nil:
		return f.newFactQuery(ctx, c.Fact)
	case c.IsPattern:
		return f.newPatternQuery(ctx, c.Word)
	case c.Word != "":
		return bleve.NewDisjunctionQuery(termsQuery(wordsField, truncateWord(c.Word)), termsQuery(marksField, manyWords)), nil
	}
	return nil, nil
}

func (f *FullText) newConjunction(ctx context.Context, parts []searchquery.Condition) (query.Query, error) {
	var narrowed []query.Query
	for _, part := range parts {
		q, err := f.newQuery(ctx, part)
		if err != nil {
			return nil, err
		}
		if q != nil {
			narrowed = append(narrowed, q)
		}
	}
	if len(narrowed) == 0 {
		return nil, nil
	}
	return bleve.NewConjunctionQuery(narrowed...), nil
}

func (f *FullText) newDisjunction(ctx context.Context, parts []searchquery.Condition) (query.Query, error) {
	narrowed := bleve.NewDisjunctionQuery()
	for _, part := range parts {
		q, err := f.newQuery(ctx, part)
		if err != nil || q == nil {
			return nil, err
		}
		narrowed.AddQuery(q)
	}
	return narrowed, nil
}

func (f *FullText) newFactQuery(ctx context.Context, c *searchquery.FactCondition) (query.Query, error) {
	prefix := factPrefix(c.Field)
	facts, complete, err := f.terms(ctx, factsField, prefix, maxExpansion,
		func(fact string) bool { return c.Holds(strings.TrimPrefix(fact, prefix)) })
	if err != nil || !complete {
		return nil, err
	}
	holds := termsQuery(factsField, facts...)
	if c.Negated {
		negation := bleve.NewBooleanQuery()
		negation.AddMustNot(holds)
		holds = negation
	}
	return bleve.NewDisjunctionQuery(holds, termsQuery(marksField, manyFacts)), nil
}

func (f *FullText) newPatternQuery(ctx context.Context, text string) (query.Query, error) {
	pattern := searchquery.NewWordPattern(text)
	words, complete, err := f.terms(ctx, wordsField, pattern.Prefix(), maxExpansion, pattern.Matches)
	if err != nil || !complete {
		return nil, err
	}
	return bleve.NewDisjunctionQuery(termsQuery(wordsField, words...), termsQuery(marksField, manyWords, longWords)), nil
}

// terms returns the field's terms that have the given prefix and that matches accepts. It returns
// complete=false if there are more than limit, or if too many terms must be compared.
func (f *FullText) terms(ctx context.Context, field, prefix string, limit int,
	matches func(string) bool) (terms []string, complete bool, err error) {
	dictionary, err := f.index.FieldDictPrefix(field, []byte(prefix))
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = dictionary.Close() }()
	for count := range maxScannedTerms {
		entry, err := dictionary.Next()
		if err != nil || entry == nil {
			return terms, err == nil, err
		}
		if count%contextCheckInterval == 0 && ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if !matches(entry.Term) {
			continue
		}
		if len(terms) == limit {
			return nil, false, nil
		}
		terms = append(terms, entry.Term)
	}
	return nil, false, nil
}

// termsQuery returns a query for the documents that have at least one of the given terms.
func termsQuery(field string, terms ...string) query.Query {
	var groups []query.Query
	for chunk := range slices.Chunk(terms, termsPerQuery) {
		group := bleve.NewDisjunctionQuery()
		for _, term := range chunk {
			q := bleve.NewTermQuery(term)
			q.SetField(field)
			group.AddQuery(q)
		}
		groups = append(groups, group)
	}
	return bleve.NewDisjunctionQuery(groups...)
}
