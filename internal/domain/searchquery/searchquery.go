// Package searchquery parses search queries and evaluates them on objects.
//
// A query is a list of terms that are joined by AND. OR, NOT (or a leading "-") and parentheses are
// allowed too. A term is text (`nginx`, `"quoted phrase"`, `ngin*`), which matches whole words in the
// object, or a field with an operator and a value (`kind:Pod`, `label.app=web`, `restarts>3`).
//
// Invariants:
//   - A Secret's values (data, stringData, and the annotation of kubectl apply that repeats them) are
//     not visible to queries: they never match and are never returned.
//   - CanMatch and Condition are necessary conditions for a match: an object for which one of them is
//     false does not match the query. Back ends use them to read fewer objects.
//   - Parsing a query's String returns an equal query.
//   - A query's size is limited (MaxLength, MaxTerms, MaxDepth), and no query causes a panic.
package searchquery

import "strings"

// Limits of a query.
const (
	// MaxLength is the maximum length of a query's text, in bytes.
	MaxLength = 4096
	// MaxTerms is the maximum number of terms in a query.
	MaxTerms = 64
	// MaxDepth is the maximum nesting depth of parentheses and negations.
	MaxDepth = 16
)

// Query is a parsed query. It is immutable.
type Query struct {
	root expression
}

// String returns the query in a canonical form that Parse accepts.
func (q *Query) String() string {
	var b strings.Builder
	q.root.print(&b, precedenceOr)
	return b.String()
}

// expression is a node of a parsed query's tree.
type expression interface {
	// print writes the node. It adds parentheses if the node's operator binds less than the precedence.
	print(b *strings.Builder, precedence int)
	// evaluate computes the node's outcome from its terms' outcomes.
	evaluate(outcomeOf func(*term) outcome) outcome
	// necessary returns a necessary condition for the node, or for its negation.
	necessary(negated bool) Condition
	// terms calls yield for each term that can be a reason for a match. negated reports whether the
	// term is below an odd number of negations.
	terms(negated bool, yield func(t *term, negated bool))
}

// Precedences of the operators, from weak to strong.
const (
	precedenceOr = iota
	precedenceAnd
	precedenceNot
)

type (
	// and and or have at least two parts. No part has its parent's type.
	and []expression
	or  []expression
	not struct{ part expression }
)

func (a and) print(b *strings.Builder, precedence int) {
	printParts(b, a, " ", precedenceAnd, precedence)
}
func (o or) print(b *strings.Builder, precedence int) {
	printParts(b, o, " OR ", precedenceOr, precedence)
}

func printParts(b *strings.Builder, parts []expression, separator string, own, outer int) {
	if own < outer {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	for i, part := range parts {
		if i > 0 {
			b.WriteString(separator)
		}
		part.print(b, own+1)
	}
}

func (n not) print(b *strings.Builder, _ int) {
	b.WriteByte('-')
	n.part.print(b, precedenceNot)
}

// outcome is the result of evaluating a term or expression for an object whose values may be unknown.
type outcome int

const (
	no outcome = iota
	unknown
	yes
)

func outcomeOf(holds bool) outcome {
	if holds {
		return yes
	}
	return no
}

func (a and) evaluate(outcomeOf func(*term) outcome) outcome {
	result := yes
	for _, part := range a {
		if result = min(result, part.evaluate(outcomeOf)); result == no {
			break
		}
	}
	return result
}

func (o or) evaluate(outcomeOf func(*term) outcome) outcome {
	result := no
	for _, part := range o {
		if result = max(result, part.evaluate(outcomeOf)); result == yes {
			break
		}
	}
	return result
}

func (n not) evaluate(outcomeOf func(*term) outcome) outcome {
	return yes - n.part.evaluate(outcomeOf)
}

func (t *term) evaluate(outcomeOf func(*term) outcome) outcome { return outcomeOf(t) }

func (a and) terms(negated bool, yield func(*term, bool)) {
	for _, part := range a {
		part.terms(negated, yield)
	}
}

func (o or) terms(negated bool, yield func(*term, bool)) {
	for _, part := range o {
		part.terms(negated, yield)
	}
}

func (n not) terms(negated bool, yield func(*term, bool)) { n.part.terms(!negated, yield) }

func (t *term) terms(negated bool, yield func(*term, bool)) { yield(t, negated) }
