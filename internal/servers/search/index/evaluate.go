package index

import (
	"context"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	indexapi "github.com/blevesearch/bleve_index_api"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// maxExpansion is the number of words that a pattern can match. A pattern that matches more words
// does not restrict the search.
const maxExpansion = 10000

// maxScannedWords is the number of indexed words that are compared with a pattern, about two seconds
// of work. A pattern for which more words would be compared does not restrict the search.
const maxScannedWords = 4 << 20

// evaluation computes sets of documents. The set nil means all documents.
type evaluation struct {
	ctx    context.Context //nolint:containedctx // It lives as long as one call of evaluate.
	reader indexapi.IndexReader
	// sources are all documents that a negation can select.
	sources []*objectcache.ClusterObjects
}

// evaluate returns the documents that fulfil a condition.
func (e evaluation) evaluate(c searchquery.Condition) (*roaring.Bitmap, error) {
	switch {
	case len(c.All) > 0:
		return e.all(c.All)
	case len(c.Any) > 0:
		return e.any(c.Any)
	case c.Fact != nil:
		return e.fact(c.Fact)
	case c.Word == "":
		return nil, nil
	case c.IsPattern:
		return e.pattern(c.Word)
	}
	return e.terms(wordsField, truncateWord(c.Word), marksField, markMany)
}

func (e evaluation) all(parts []searchquery.Condition) (*roaring.Bitmap, error) {
	var result *roaring.Bitmap
	for _, part := range parts {
		set, err := e.evaluate(part)
		switch {
		case err != nil:
			return nil, err
		case set == nil:
			continue
		case result == nil:
			result = set
		default:
			result.And(set)
		}
		if result.IsEmpty() {
			break
		}
	}
	return result, nil
}

func (e evaluation) any(parts []searchquery.Condition) (*roaring.Bitmap, error) {
	result := roaring.New()
	for _, part := range parts {
		set, err := e.evaluate(part)
		if err != nil || set == nil {
			return nil, err
		}
		result.Or(set)
	}
	return result, nil
}

// pattern returns the documents with a word that a pattern matches.
func (e evaluation) pattern(pattern string) (*roaring.Bitmap, error) {
	words, complete, err := e.wordsOf(pattern)
	if err != nil || !complete {
		return nil, err
	}
	result, err := e.terms(marksField, markMany, marksField, markLong)
	if err != nil {
		return nil, err
	}
	for _, word := range words {
		if err := e.add(result, wordsField, word); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// fact returns the documents with a fact that holds, or without such a fact.
func (e evaluation) fact(c *searchquery.FactCondition) (*roaring.Bitmap, error) {
	prefix := factPrefix(c.Field)
	terms, err := e.reader.FieldDictPrefix(factsField, []byte(prefix))
	if err != nil {
		return nil, err
	}
	defer release(terms)
	result := roaring.New()
	for count := 0; ; count++ {
		entry, err := terms.Next()
		if err != nil {
			return nil, err
		}
		if entry == nil {
			break
		}
		if count == maxExpansion {
			return nil, nil
		}
		if !c.Holds(strings.TrimPrefix(entry.Term, prefix)) {
			continue
		}
		if err := e.add(result, factsField, entry.Term); err != nil {
			return nil, err
		}
	}
	if c.Negated {
		all, err := e.ofSources(e.sources)
		if err != nil {
			return nil, err
		}
		all.AndNot(result)
		result = all
	}
	return result, e.add(result, marksField, markFacts)
}

// wordsOf returns the indexed words that a pattern matches. It returns complete=false if they are too
// many, or if the index cannot tell: then the pattern does not restrict the search.
func (e evaluation) wordsOf(text string) (words []string, complete bool, err error) {
	pattern := searchquery.NewWordPattern(text)
	terms, err := e.reader.FieldDictPrefix(wordsField, []byte(pattern.Prefix()))
	if err != nil {
		return nil, false, nil
	}
	defer release(terms)
	for count := range maxScannedWords {
		entry, err := terms.Next()
		if err != nil || entry == nil {
			return words, err == nil, nil
		}
		if count%checkEvery == 0 && e.ctx.Err() != nil {
			return nil, false, e.ctx.Err()
		}
		if !pattern.IsPrefix() && !pattern.Matches(entry.Term) {
			continue
		}
		if len(words) == maxExpansion {
			return nil, false, nil
		}
		words = append(words, entry.Term)
	}
	return nil, false, nil
}

// ofSources returns the documents of sources.
func (e evaluation) ofSources(sources []*objectcache.ClusterObjects) (*roaring.Bitmap, error) {
	result := roaring.New()
	for _, objects := range sources {
		if err := e.add(result, sourceField, sourceTerm(objects.Source())); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// terms returns the documents that have one of two terms.
func (e evaluation) terms(field, term, otherField, otherTerm string) (*roaring.Bitmap, error) {
	result := roaring.New()
	if err := e.add(result, field, term); err != nil {
		return nil, err
	}
	return result, e.add(result, otherField, otherTerm)
}

// add adds the documents with a term.
func (e evaluation) add(to *roaring.Bitmap, field, term string) error {
	documents, err := e.reader.TermFieldReader(e.ctx, []byte(term), field, false, false, false)
	if err != nil {
		return err
	}
	defer release(documents)
	var found indexapi.TermFieldDoc
	for {
		next, err := documents.Next(&found)
		if err != nil || next == nil {
			return err
		}
		// The numbers of documents of one index have at most 32 bits.
		to.Add(uint32(next.ID.Value()))
	}
}
