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
	// sourceField contains the object's source, see sourceTerm.
	sourceField = "source"
	// keyField contains the object's position, see Cursor.
	keyField = "key"
	// versionField contains the object's resourceVersion.
	versionField = "version"
	// wordsField contains the object's distinct words.
	wordsField = "words"
	// factsField contains the object's facts, see factPrefix.
	factsField = "facts"
	// marksField names the limits that the object exceeds.
	marksField = "marks"
)

// Limits of a document.
const (
	// maxWordBytes is the length to which words are truncated, in bytes.
	maxWordBytes = 128
	// maxWords is the maximum number of an object's indexed words.
	maxWords = 8192
	// maxFactBytes is the maximum length of an indexed fact, in bytes.
	maxFactBytes = 256
	// maxFacts is the maximum number of an object's indexed facts.
	maxFacts = 64
)

// Values of marksField. The index lacks some words or facts of an object that exceeds a limit.
// Therefore such an object is a candidate for all words (manyWords), for all patterns (longWords) or
// for all facts (manyFacts).
const (
	manyWords = "words"
	longWords = "long"
	manyFacts = "facts"
)

// wordsAnalyzer is the name of the analyzer that splits the text of wordsField into words.
const wordsAnalyzer = "words"

// newMapping returns the documents' schema. Whenever the schema changes, indexFormat must change too.
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

// collectWords returns the object's distinct words, separated by spaces, and the marks for exceeded
// limits.
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

// truncateWord truncates a word to the maximum length of indexed words.
func truncateWord(word string) string { return word[:min(len(word), maxWordBytes)] }

// collectFacts returns the object's distinct facts, and the marks for exceeded limits.
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

// factPrefix returns the prefix of all facts about a field. The value follows the prefix.
func factPrefix(field string) string { return field + separator }

// documentID returns the ID of an object's document, which consists of the cluster and the UID.
func documentID(id feed.ID) string { return id.Cluster + separator + string(id.UID) }

// sourceTerm returns the index term for a source. It omits the kind's plural name and scope, because
// they can change when a CustomResourceDefinition is recreated.
func sourceTerm(source *objectcache.Source) string {
	return Cursor{Cluster: source.Cluster, Kind: source.Kind}.key()
}
