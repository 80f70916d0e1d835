package searchquery

import (
	"slices"
	"strings"
	"time"
)

// Known contains what a back end knows about one or more objects before it decodes them.
type Known struct {
	// APIVersion and Kind are always known. Cluster is known unless AnyCluster is true.
	Cluster, APIVersion, Kind string
	AnyCluster                bool
	// HasName means that the namespace and the name are known.
	HasName         bool
	Namespace, Name string
	// HasAge means that Created and Now are known. A zero Created means that the object has no age.
	HasAge       bool
	Created, Now time.Time
	// Label returns the label's value, and whether the object has the label. It is nil if the labels
	// are not known.
	Label func(key string) (string, bool)
}

// CanMatch reports whether an object of which only some values are known can match the query. It
// returns false only if the object does not match, regardless of its other values.
func (q *Query) CanMatch(known Known) bool {
	return q.root.evaluate(known.outcomeOf) != no
}

// NeedsName reports whether CanMatch can use the objects' namespaces or names.
func (q *Query) NeedsName() bool { return q.uses(namespaceField, nameField) }

// NeedsLabels reports whether CanMatch can use the objects' labels.
func (q *Query) NeedsLabels() bool { return q.uses(labelField) }

func (q *Query) uses(kinds ...fieldKind) bool {
	used := false
	q.root.terms(false, func(t *term, _ bool) { used = used || slices.Contains(kinds, t.field.kind) })
	return used
}

// outcomeOf returns the term's outcome, or unknown if it depends on values that are not known.
func (k Known) outcomeOf(t *term) outcome {
	var value string
	switch t.field.kind {
	case clusterField:
		if k.AnyCluster {
			return unknown
		}
		value = k.Cluster
	case kindField:
		value = k.Kind
	case apiVersionField:
		value = k.APIVersion
	case groupField:
		value = groupOf(k.APIVersion)
	case namespaceField, nameField:
		if !k.HasName {
			return unknown
		}
		value = k.Name
		if t.field.kind == namespaceField {
			value = k.Namespace
		}
	case ageField:
		if !k.HasAge {
			return unknown
		}
		return outcomeOf(!k.Created.IsZero() && t.matchesAge(k.Now.Sub(k.Created)))
	case labelField:
		if k.Label == nil {
			return unknown
		}
		label, found := k.Label(t.field.key)
		return outcomeOf((found && t.matchesValue(label)) != (t.operator == "!="))
	default:
		return unknown
	}
	return outcomeOf(t.matchesValue(value) != (t.operator == "!="))
}

// Condition is a necessary condition for an object to match a query. An index can evaluate it with the
// words and facts that it stores for the object. A Condition has exactly one of these forms: All (every
// part holds), Any (at least one part holds), Word, Fact, or none of them, which every object fulfills.
type Condition struct {
	All, Any []Condition
	// Word is one of the object's words (see Words), or a pattern with "*" if IsPattern is true.
	Word      string
	IsPattern bool
	// Fact is a condition for one of the object's facts (see Facts).
	Fact *FactCondition
}

// FactCondition requires that the object has a fact whose value holds or, if Negated is true, that it
// has none. It is not only necessary but also sufficient for the term.
type FactCondition struct {
	Field   string
	Negated bool
	Holds   func(value string) bool
}

// IsTrue reports whether every object fulfills the condition.
func (c Condition) IsTrue() bool {
	return c.Word == "" && c.Fact == nil && len(c.All) == 0 && len(c.Any) == 0
}

// factFields are the fields that have only a few different values, and that users exclude or compare.
// An index of words does not narrow down such terms.
func factFields() []fieldKind {
	return []fieldKind{phaseField, readyField, statusField, restartsField}
}

// Facts calls yield for each value of the object's fields for which a Condition can have a Fact.
func Facts(object map[string]any, yield func(field, value string)) {
	shown := visible(object)
	for _, kind := range factFields() {
		for value := range (field{kind: kind}).values("", shown) {
			yield(string(kind), value)
		}
	}
}

// Condition returns a condition that the words and facts of every matching object fulfill.
func (q *Query) Condition() Condition { return q.root.necessary(false) }

func (a and) necessary(negated bool) Condition {
	if negated {
		return anyOf(a, negated)
	}
	return allOf(a, negated)
}

func (o or) necessary(negated bool) Condition {
	if negated {
		return allOf(o, negated)
	}
	return anyOf(o, negated)
}

func (n not) necessary(negated bool) Condition { return n.part.necessary(!negated) }

func allOf(parts []expression, negated bool) Condition {
	conditions := make([]Condition, 0, len(parts))
	for _, part := range parts {
		conditions = append(conditions, part.necessary(negated))
	}
	return all(conditions)
}

// all returns a condition that requires all conditions, and omits those that are always true.
func all(conditions []Condition) Condition {
	conditions = slices.DeleteFunc(conditions, Condition.IsTrue)
	if len(conditions) == 1 {
		return conditions[0]
	}
	return Condition{All: conditions}
}

func anyOf(parts []expression, negated bool) Condition {
	var conditions []Condition
	for _, part := range parts {
		condition := part.necessary(negated)
		if condition.IsTrue() {
			return Condition{}
		}
		conditions = append(conditions, condition)
	}
	return Condition{Any: conditions}
}

// necessary returns a condition without which the term, or its negation, cannot hold.
func (t *term) necessary(negated bool) Condition {
	negated = negated != (t.operator == "!=")
	if slices.Contains(factFields(), t.field.kind) {
		return Condition{Fact: &FactCondition{Field: string(t.field.kind), Negated: negated, Holds: t.matchesValue}}
	}
	if negated || !t.isText() {
		return Condition{}
	}
	var conditions []Condition
	if t.field.kind == labelField || t.field.kind == annotationField {
		conditions = wordsOf(newPhrase(t.field.key, false))
	}
	switch t.operator {
	case matchText:
		conditions = append(conditions, wordsOf(t.words)...)
	case ":":
		conditions = append(conditions, wordsOf(t.words)...)
		conditions = append(conditions, globWords(t.glob)...)
	case "=", "!=":
		conditions = append(conditions, wordsOf(newPhrase(t.value, false))...)
	}
	return all(conditions)
}

// isText reports whether the values of the term's field are among the object's texts.
func (t *term) isText() bool {
	f := t.field
	switch f.kind {
	case "", namespaceField, nameField, imageField, nodeField, ownerField, labelField:
		return true
	case annotationField:
		return f.key != lastApplied && f.key != cachedFrom
	case pathField:
		return !isExcludedPath(f.path)
	}
	return false
}

// isExcludedPath reports whether there may be values at the path that text does not match.
func isExcludedPath(path []string) bool {
	if path[0] != "metadata" {
		return path[0] == "apiVersion" || path[0] == "kind"
	}
	return len(path) > 1 && slices.Contains([]string{"managedFields", "resourceVersion", "annotations"}, path[1])
}

func wordsOf(words phrase) []Condition {
	var conditions []Condition
	for _, word := range words {
		// A pattern that contains only "*" matches any word.
		if strings.Trim(word.text, "*") != "" {
			conditions = append(conditions, Condition{Word: word.text, IsPattern: word.glob})
		}
	}
	return conditions
}

// globWords returns patterns for the words that every text contains that matches the glob. A "*" in the
// middle can stand for several words, so each pattern has "*" at most at its start and at its end.
func globWords(glob string) []Condition {
	var conditions []Condition
	parts := strings.Split(glob, "*")
	for i, part := range parts {
		words := newPhrase(part, false)
		for j, word := range words {
			pattern := word.text
			if j == 0 && i > 0 && strings.HasPrefix(part, word.text) {
				pattern = "*" + pattern
			}
			if j == len(words)-1 && i < len(parts)-1 && strings.HasSuffix(part, word.text) {
				pattern += "*"
			}
			conditions = append(conditions, Condition{Word: pattern, IsPattern: pattern != word.text})
		}
	}
	return conditions
}
