package searchquery

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Operators of terms that have no operator in the query's text.
const (
	matchText   = ""
	fieldExists = "exists"
)

// term is one condition of a query.
type term struct {
	// field is zero if the term is text.
	field    field
	operator string
	value    string
	quoted   bool

	// words is the phrase to find, for text and for the operator ":".
	words phrase
	// glob is the pattern for the operator ":" with a wildcard, in lower case. It must match the whole
	// value.
	glob string
	// number and age are the limits for the operators <, <=, > and >=.
	number resource.Quantity
	age    time.Duration
}

func (t *term) print(b *strings.Builder, _ int) {
	b.WriteString(t.field.name)
	if t.operator == fieldExists {
		return
	}
	b.WriteString(t.operator)
	if t.quoted {
		b.WriteString(quote(t.value))
	} else {
		b.WriteString(t.value)
	}
}

// newTerm validates a term and prepares its value for matching.
func newTerm(text string, from token) (*term, error) {
	t := &term{operator: from.operator, value: from.value, quoted: from.quoted}
	if from.operator == "" {
		return newTextTerm(text, from, t)
	}
	var err error
	if t.field, err = parseField(text, from); err != nil {
		return nil, err
	}
	if t.value == "" && !t.quoted {
		return nil, syntaxError(text, from.valueOffset, `for an empty value, write ""`, "expected a value after %q", t.field.name+t.operator)
	}
	switch {
	case t.field.isAge():
		return t, t.parseAge(text, from)
	case strings.ContainsAny(t.operator, "<>"):
		return t, t.parseNumber(text, from)
	case t.operator == ":":
		return t, t.parseWords(text, from)
	}
	return t, nil
}

// newTextTerm returns a term without an operator: text, or a label or annotation that must exist.
func newTextTerm(text string, from token, t *term) (*term, error) {
	if !t.quoted && (strings.HasPrefix(t.value, labelPrefix) || strings.HasPrefix(t.value, annotationPrefix)) {
		from.field = t.value
		found, err := parseField(text, from)
		if err != nil {
			return nil, err
		}
		return &term{field: found, operator: fieldExists}, nil
	}
	return t, t.parseWords(text, from)
}

// parseWords prepares the words or the glob for text and for the operator ":".
func (t *term) parseWords(text string, from token) error {
	wildcards := !t.quoted && strings.Contains(t.value, "*")
	if wildcards && t.operator == ":" {
		t.glob = strings.ToLower(t.value)
		return nil
	}
	if t.words = newPhrase(t.value, wildcards); len(t.words) == 0 {
		return syntaxError(text, from.valueOffset, "search for a word, or use field=value for an exact value", "%q has no letter and no digit",
			shorten(t.value, maxQuoted))
	}
	return nil
}

func (t *term) parseNumber(text string, from token) error {
	number, ok := parseNumber(t.value)
	if !ok {
		return syntaxError(text, from.valueOffset, "for example: restarts>3, or spec.resources.requests.memory>=2Gi",
			"%q is no number or quantity, which %q needs", shorten(t.value, maxQuoted), t.operator)
	}
	t.number = number
	return nil
}

func (t *term) parseAge(text string, from token) error {
	if !strings.ContainsAny(t.operator, "<>") {
		return syntaxError(text, from.offset, "for example: age>1h", "expected <, <=, > or >= after age, got %q", t.operator)
	}
	age, ok := parseAge(t.value)
	if !ok {
		return syntaxError(text, from.valueOffset, "for example: 30s, 10m, 1h30m, 7d, 2w or 1y", "%q is no time, which age needs",
			shorten(t.value, maxQuoted))
	}
	t.age = age
	return nil
}

// matchesValue reports whether a value of the term's field fulfills the term. For "!=", it reports
// whether the value is equal, which means that the term does not hold.
func (t *term) matchesValue(value string) bool {
	switch t.operator {
	case ":":
		if t.glob != "" {
			return matchGlob(t.glob, strings.ToLower(value))
		}
		return t.words.isIn(value)
	case "=", "!=":
		return value == t.value
	case fieldExists:
		return true
	}
	number, ok := parseNumber(value)
	return ok && compares(number.Cmp(t.number), t.operator)
}

// matchesAge reports whether the age fulfills the term, which must be about ages.
func (t *term) matchesAge(age time.Duration) bool {
	return compares(cmp.Compare(age, t.age), t.operator)
}

// compares reports whether the operator accepts the given result of comparing the object's value with
// the term's value.
func compares(result int, operator string) bool {
	switch operator {
	case "<":
		return result < 0
	case "<=":
		return result <= 0
	case ">":
		return result > 0
	case ">=":
		return result >= 0
	}
	return false
}
