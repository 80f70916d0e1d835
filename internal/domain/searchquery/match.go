package searchquery

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits for the reasons of a match.
const (
	// MaxMatches is the maximum number of reasons that Match returns.
	MaxMatches = 16
	// MaxValue is the maximum length of a value, in characters. Longer values are shortened.
	MaxValue = 120
)

// Matched describes why an object matches a query.
type Matched struct {
	// Field is the query's field, or the path at which text was found.
	Field string
	// Value is the field's value, shortened.
	Value string
}

// Match reports whether the object matches the query, and which values matched.
func (q *Query) Match(d *Document) ([]Matched, bool) {
	shown := *d
	shown.Object = visible(d.Object)
	if q.root.evaluate(func(t *term) outcome { return outcomeOf(t.holds(&shown)) }) != yes {
		return nil, false
	}
	return q.reasons(&shown), true
}

// reasons returns the values of the terms that the object fulfills.
func (q *Query) reasons(d *Document) []Matched {
	var found []Matched
	seen := map[Matched]bool{}
	q.root.terms(false, func(t *term, negated bool) {
		if len(found) == MaxMatches || t.operator == matchText && negated {
			return
		}
		if t.operator != matchText && t.holds(d) == negated {
			return
		}
		if reason, ok := t.reason(d); ok && !seen[reason] {
			seen[reason] = true
			found = append(found, reason)
		}
	})
	return found
}

// holds reports whether the object fulfills the term.
func (t *term) holds(d *Document) bool {
	switch {
	case t.operator == matchText:
		return t.isInText(d.Object)
	case t.field.isAge():
		age, known := ageOf(d.Object, d.Now)
		return known && t.matchesAge(age)
	}
	found := false
	for value := range t.field.values(d.Cluster, d.Object) {
		if found = t.matchesValue(value); found {
			break
		}
	}
	return found != (t.operator == "!=")
}

func (t *term) isInText(object map[string]any) bool {
	found := false
	visitTexts(object, func(_ *textWalk, text string) bool {
		found = t.words.isIn(text)
		return !found
	})
	return found
}

// reason returns the value that fulfills the term. If the term excludes values, it returns the value
// that the object has instead.
func (t *term) reason(d *Document) (Matched, bool) {
	switch {
	case t.operator == matchText:
		return t.textReason(d.Object)
	case t.field.isAge():
		age, known := ageOf(d.Object, d.Now)
		return Matched{Field: t.field.name, Value: age.Truncate(time.Second).String()}, known
	}
	first, found := "", false
	for value := range t.field.values(d.Cluster, d.Object) {
		if t.matchesValue(value) {
			first, found = value, true
			break
		}
		if !found {
			first, found = value, true
		}
	}
	return Matched{Field: t.field.name, Value: t.excerpt(first)}, found
}

// textReason returns the match with the first path in the order of comparePaths, so that the result is
// always the same.
func (t *term) textReason(object map[string]any) (Matched, bool) {
	var first []pathStep
	value := ""
	visitTexts(object, func(w *textWalk, text string) bool {
		if t.words.isIn(text) && (first == nil || comparePaths(w.path, first) < 0) {
			first, value = slices.Clone(w.path), text
		}
		return true
	})
	return Matched{Field: shorten(pathString(first), MaxValue), Value: t.excerpt(value)}, first != nil
}

// excerpt shortens the value to the part that contains the term's first word.
func (t *term) excerpt(value string) string {
	if utf8.RuneCountInString(value) <= MaxValue {
		return value
	}
	start := 0
	if len(t.words) > 0 {
		start = t.words.indexIn(value)
	}
	const before = 30
	runes := []rune(value[start:])
	prefix := []rune(value[:start])
	if len(prefix) > before {
		prefix = append([]rune("…"), prefix[len(prefix)-before:]...)
	}
	return strings.ToValidUTF8(shorten(string(append(prefix, runes...)), MaxValue), "")
}

// indexIn returns the phrase's byte offset in text, or 0 if text does not contain it.
func (p phrase) indexIn(text string) int {
	for rest := text; ; {
		word, after := nextWord(rest)
		if word == "" {
			return 0
		}
		if p[0].matches(word) && p[1:].isPrefixOf(after) {
			return len(text) - len(after) - len(word)
		}
		rest = after
	}
}
