package index

import (
	"strings"

	indexapi "github.com/blevesearch/bleve_index_api"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Fields of documents.
const (
	// idField is the identifier of a document, which the library requires: cluster and UID.
	idField = "_id"
	// sourceField is the source of the object.
	sourceField = "s"
	// keyField is the position of the object, see Cursor.
	keyField = "k"
	// versionField is the resourceVersion.
	versionField = "v"
	// wordsField has the words of the object, without positions.
	wordsField = "w"
	// factsField has the facts of the object: field and value.
	factsField = "f"
	// marksField says that a limit applied to the words of the object.
	marksField = "m"
)

// Limits of the words of one document.
const (
	// maxWordBytes is the length to which words are truncated.
	maxWordBytes = 128
	// maxWords is the number of different words that are indexed.
	maxWords = 8192
	// maxFactBytes is the length of facts that are indexed.
	maxFactBytes = 256
	// maxFacts is the number of different facts that are indexed.
	maxFacts = 64
)

// Values of marksField. An object with markMany is a candidate of each query, an object with
// markLong is a candidate of each query with a wildcard, and an object with markFacts is a candidate
// of each query for facts.
const (
	markMany  = "many"
	markLong  = "long"
	markFacts = "facts"
)

// document is one object in the form that the library stores.
type document struct {
	id     string
	fields []*field
	bytes  int
}

// newDocument returns the document of an object with its content.
func newDocument(id feed.ID, object *objectcache.Object, content map[string]any) *document {
	words, marks := collectWords(content)
	facts, areAll := collectFacts(content)
	if !areAll {
		marks = append(marks, markFacts)
	}
	d := &document{id: documentID(id), fields: []*field{
		newField(wordsField, indexapi.IndexField|indexapi.SkipFreqNorm, words),
		newField(sourceField, indexapi.IndexField|indexapi.SkipFreqNorm, frequencies(sourceTerm(object.Source()))),
		newField(keyField, indexapi.IndexField|indexapi.DocValues|indexapi.SkipFreqNorm, frequencies(CursorOf(object).key())),
		newField(factsField, indexapi.IndexField|indexapi.SkipFreqNorm, facts),
		newField(versionField, indexapi.IndexField|indexapi.DocValues|indexapi.SkipFreqNorm, frequencies(object.ResourceVersion())),
	}}
	if len(marks) > 0 {
		d.fields = append(d.fields, newField(marksField, indexapi.IndexField|indexapi.SkipFreqNorm, frequencies(marks...)))
	}
	// An estimate of the memory that the library needs for the document.
	d.bytes = 1024 + 100*len(words)
	return d
}

// collectWords returns the words of an object, and the marks of the limits that applied.
func collectWords(object map[string]any) (indexapi.TokenFrequencies, []string) {
	words := make(indexapi.TokenFrequencies, 128)
	isLong, isMany := false, false
	searchquery.Words(object, func(word string) bool {
		if len(word) > maxWordBytes {
			word, isLong = truncateWord(word), true
		}
		if words[word] != nil {
			return true
		}
		if len(words) == maxWords {
			isMany = true
			return false
		}
		// The decoded object must not stay in memory because of one word.
		words[strings.Clone(word)] = once
		return true
	})
	var marks []string
	if isMany {
		marks = append(marks, markMany)
	}
	if isLong {
		marks = append(marks, markLong)
	}
	return words, marks
}

// collectFacts returns the facts of an object, and whether all of them are within the limits.
func collectFacts(object map[string]any) (facts indexapi.TokenFrequencies, areAll bool) {
	facts, areAll = indexapi.TokenFrequencies{}, true
	searchquery.Facts(object, func(field, value string) {
		fact := factPrefix(field) + value
		if len(fact) > maxFactBytes || facts[fact] == nil && len(facts) == maxFacts {
			areAll = false
			return
		}
		facts[fact] = once
	})
	return facts, areAll
}

// factPrefix is the start of the facts of a field.
func factPrefix(field string) string { return field + idSeparator }

// truncateWord returns the start of a word.
func truncateWord(word string) string { return word[:min(len(word), maxWordBytes)] }

// once is the frequency of all words: documents have no frequencies. It is never changed.
var once = newFrequency()

func newFrequency() *indexapi.TokenFreq {
	frequency := &indexapi.TokenFreq{}
	frequency.SetFrequency(1)
	return frequency
}

func frequencies(terms ...string) indexapi.TokenFrequencies {
	result := make(indexapi.TokenFrequencies, len(terms))
	for _, term := range terms {
		if term != "" {
			result[term] = once
		}
	}
	return result
}

// idSeparator separates the parts of IDs and sources. Clusters and kinds do not contain it.
const idSeparator = "\x00"

func documentID(id feed.ID) string { return id.Cluster + idSeparator + string(id.UID) }

// sourceTerm returns the term of a source. The plural name and the scope of a kind can change when its
// definition is created anew, so they are not part of the term: the feed does not know the former ones.
func sourceTerm(source *objectcache.Source) string {
	return strings.Join([]string{source.Cluster, source.Kind.Kind, source.Kind.Group, source.Kind.Version}, idSeparator)
}

// parseSourceTerm returns the cluster and the kind of the source of a term.
func parseSourceTerm(term string) (objectcache.Source, bool) {
	parts := strings.Split(term, idSeparator)
	if len(parts) != 4 {
		return objectcache.Source{}, false
	}
	source := objectcache.Source{Cluster: parts[0]}
	source.Kind.Kind, source.Kind.Group, source.Kind.Version = parts[1], parts[2], parts[3]
	return source, true
}

// ID implements the document of the library.
func (d *document) ID() string { return d.id }

// Size returns the estimated memory.
func (d *document) Size() int { return d.bytes }

// VisitFields calls visitor for each field.
func (d *document) VisitFields(visitor indexapi.FieldVisitor) {
	for _, f := range d.fields {
		visitor(f)
	}
}

// VisitComposite does nothing: there are no composite fields.
func (d *document) VisitComposite(indexapi.CompositeFieldVisitor) {}

// HasComposite returns false.
func (d *document) HasComposite() bool { return false }

// NumPlainTextBytes is a statistic that is not used.
func (d *document) NumPlainTextBytes() uint64 { return 0 }

// StoredFieldsBytes is a statistic that is not used.
func (d *document) StoredFieldsBytes() uint64 { return 0 }

// Indexed returns true.
func (d *document) Indexed() bool { return true }

// AddIDField adds the field with the ID.
func (d *document) AddIDField() {
	id := newField(idField, indexapi.IndexField|indexapi.StoreField, frequencies(d.id))
	id.value = []byte(d.id)
	d.fields = append(d.fields, id)
}

// field is a field whose terms are known, so the library analyzes nothing.
type field struct {
	name    string
	options indexapi.FieldIndexingOptions
	terms   indexapi.TokenFrequencies
	value   []byte
}

func newField(name string, options indexapi.FieldIndexingOptions, terms indexapi.TokenFrequencies) *field {
	return &field{name: name, options: options, terms: terms}
}

// Name implements the field of the library.
func (f *field) Name() string { return f.name }

// Value returns the stored value: the ID, or nothing.
func (f *field) Value() []byte { return f.value }

// ArrayPositions returns nil.
func (f *field) ArrayPositions() []uint64 { return nil }

// EncodedFieldType returns the type of text fields.
func (f *field) EncodedFieldType() byte { return 't' }

// Analyze does nothing.
func (f *field) Analyze() {}

// Options returns what the library stores for the field.
func (f *field) Options() indexapi.FieldIndexingOptions { return f.options }

// AnalyzedLength returns the number of terms.
func (f *field) AnalyzedLength() int { return len(f.terms) }

// AnalyzedTokenFrequencies returns the terms.
func (f *field) AnalyzedTokenFrequencies() indexapi.TokenFrequencies { return f.terms }

// NumPlainTextBytes is a statistic that is not used.
func (f *field) NumPlainTextBytes() uint64 { return 0 }
