package index

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/whitespace"
	"github.com/blevesearch/bleve/v2/mapping"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Fields of documents.
const (
	// sourceField has the source of the object, see sourceTerm.
	sourceField = "source"
	// keyField has the position of the object, see Cursor.
	keyField = "key"
	// versionField has the resourceVersion.
	versionField = "version"
	// wordsField has the distinct words of the object.
	wordsField = "words"
	// factsField has the facts of the object, see factPrefix.
	factsField = "facts"
	// marksField names the limits that the object exceeds.
	marksField = "marks"
)

// Limits of a document.
const (
	// maxWordBytes is the length to which words are truncated.
	maxWordBytes = 128
	// maxWords is the maximum number of indexed words.
	maxWords = 8192
	// maxFactBytes is the maximum length of an indexed fact.
	maxFactBytes = 256
	// maxFacts is the maximum number of indexed facts.
	maxFacts = 64
)

// Values of marksField. An object that exceeds a limit is a candidate although the index lacks some of
// its words or facts: with manyWords for all words, with longWords for all patterns, with manyFacts for
// all facts.
const (
	manyWords = "words"
	longWords = "long"
	manyFacts = "facts"
)

// wordsAnalyzer splits the text of wordsField into words.
const wordsAnalyzer = "words"

// newMapping returns the schema of documents. After a change, indexFormat must change too.
func newMapping() (mapping.IndexMapping, error) {
	document := bleve.NewDocumentStaticMapping()
	document.AddSubDocumentMapping("_all", bleve.NewDocumentDisabledMapping())
	for _, field := range []*mapping.FieldMapping{
		{Name: sourceField, Analyzer: keyword.Name},
		{Name: keyField, Analyzer: keyword.Name, DocValues: true},
		{Name: versionField, Analyzer: keyword.Name, DocValues: true},
		{Name: wordsField, Analyzer: wordsAnalyzer},
		{Name: factsField, Analyzer: keyword.Name},
		{Name: marksField, Analyzer: keyword.Name},
	} {
		field.Type, field.Index, field.SkipFreqNorm = "text", true, true
		document.AddFieldMappingsAt(field.Name, field)
	}
	schema := bleve.NewIndexMapping()
	schema.DefaultMapping = document
	err := schema.AddCustomAnalyzer(wordsAnalyzer, map[string]any{"type": custom.Name, "tokenizer": whitespace.Name})
	if err != nil {
		return nil, fmt.Errorf("defining the fields of the full-text index: %w", err)
	}
	return schema, nil
}

// newDocument returns the document for an object and its decoded content.
func newDocument(object *objectcache.Object, content map[string]any) map[string]any {
	words, wordMarks := collectWords(content)
	facts, factMarks := collectFacts(content)
	return map[string]any{
		sourceField: sourceTerm(object.Source()), keyField: CursorOf(object).key(), versionField: object.ResourceVersion(),
		wordsField: words, factsField: facts, marksField: append(wordMarks, factMarks...),
	}
}

// collectWords returns the distinct words of an object, separated by spaces.
func collectWords(object map[string]any) (text string, marks []string) {
	words := make(map[string]struct{}, 128)
	isLong, isMany := false, false
	searchquery.Words(object, func(word string) bool {
		isLong = isLong || len(word) > maxWordBytes
		words[truncateWord(word)] = struct{}{}
		isMany = len(words) > maxWords
		return !isMany
	})
	var joined strings.Builder
	for word := range words {
		joined.WriteString(word)
		joined.WriteByte(' ')
	}
	if isMany {
		marks = append(marks, manyWords)
	}
	if isLong {
		marks = append(marks, longWords)
	}
	return joined.String(), marks
}

// truncateWord truncates a word to the length of indexed words.
func truncateWord(word string) string { return word[:min(len(word), maxWordBytes)] }

// collectFacts returns the distinct facts of an object.
func collectFacts(object map[string]any) (facts, marks []string) {
	searchquery.Facts(object, func(field, value string) {
		fact := factPrefix(field) + value
		switch {
		case slices.Contains(facts, fact):
		case len(fact) > maxFactBytes || len(facts) == maxFacts:
			marks = []string{manyFacts}
		default:
			facts = append(facts, fact)
		}
	})
	return facts, marks
}

// factPrefix returns the start of all facts about a field. The value follows.
func factPrefix(field string) string { return field + separator }

// documentID returns the ID of an object's document: cluster and UID.
func documentID(id feed.ID) string { return id.Cluster + separator + string(id.UID) }

// sourceTerm returns the term for a source. It omits the plural name and the scope of the kind, because
// they can change when a CustomResourceDefinition is recreated.
func sourceTerm(source *objectcache.Source) string {
	return Cursor{Cluster: source.Cluster, Kind: source.Kind}.key()
}
