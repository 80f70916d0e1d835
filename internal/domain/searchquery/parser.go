package searchquery

import (
	"strings"
	"unicode/utf8"
)

// Parse parses a query's text. Its errors are of type *SyntaxError.
func Parse(text string) (*Query, error) {
	if len(text) > MaxLength {
		return nil, syntaxError("", 0, "use fewer or shorter terms", "the query has %d bytes, at most %d are allowed", len(text), MaxLength)
	}
	if !utf8.ValidString(text) {
		valid := strings.ToValidUTF8(text, "\uFFFD")
		return nil, syntaxError(valid, strings.IndexRune(valid, utf8.RuneError), "encode the query as UTF-8", "a character is not valid UTF-8")
	}
	p := &parser{lexer: lexer{text: text}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.kind == endToken {
		return nil, syntaxError(text, 0, `for example: kind:Pod, or * for all objects`, "the query is empty, expected a term")
	}
	root, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.token.kind != endToken {
		return nil, syntaxError(text, p.token.offset, "remove it, or add the opening parenthesis", "expected a term or the end, got %s", p.token)
	}
	return &Query{root: root}, nil
}

// parser is a recursive descent parser with the levels alternatives, conjunction and operand.
type parser struct {
	lexer lexer
	token token
	// terms is the number of terms so far. depth is the number of open parentheses and negations.
	terms, depth int
}

func (p *parser) advance() (err error) {
	p.token, err = p.lexer.next()
	return err
}

// alternatives parses expressions that are joined by OR.
func (p *parser) alternatives() (expression, error) {
	var parts or
	for {
		part, err := p.conjunction()
		if err != nil {
			return nil, err
		}
		if nested, ok := part.(or); ok {
			parts = append(parts, nested...)
		} else {
			parts = append(parts, part)
		}
		if p.token.kind != orToken {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return parts, nil
}

// conjunction parses expressions that are joined by AND or written one after the other.
func (p *parser) conjunction() (expression, error) {
	var parts and
	for {
		part, err := p.operand()
		if err != nil {
			return nil, err
		}
		if nested, ok := part.(and); ok {
			parts = append(parts, nested...)
		} else {
			parts = append(parts, part)
		}
		if p.token.kind == andToken {
			if err := p.advance(); err != nil {
				return nil, err
			}
			continue
		}
		if p.token.kind != termToken && p.token.kind != notToken && p.token.kind != openToken {
			break
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return parts, nil
}

// operand parses a term, a negation, or an expression in parentheses.
func (p *parser) operand() (expression, error) {
	found := p.token
	switch found.kind {
	case termToken:
		return p.term()
	case notToken:
		part, err := p.nested(p.operand)
		return not{part}, err
	case openToken:
		part, err := p.nested(p.alternatives)
		if err != nil {
			return nil, err
		}
		if p.token.kind != closeToken {
			return nil, syntaxError(p.lexer.text, found.offset, `add ")" after the last term of the group`, "no closing parenthesis")
		}
		return part, p.advance()
	}
	return nil, syntaxError(p.lexer.text, found.offset, "write AND, OR and NOT in quotes to search for these words", "expected a term, got %s",
		found)
}

// nested consumes the current token, and parses an expression that is nested one level deeper.
func (p *parser) nested(parse func() (expression, error)) (expression, error) {
	if p.depth++; p.depth > MaxDepth {
		return nil, syntaxError(p.lexer.text, p.token.offset, "remove parentheses or negations",
			"parentheses and negations are nested deeper than %d", MaxDepth)
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return nil, err
	}
	return parse()
}

func (p *parser) term() (expression, error) {
	found := p.token
	if p.terms++; p.terms > MaxTerms {
		return nil, syntaxError(p.lexer.text, found.offset, "use several queries", "the query has more than %d terms", MaxTerms)
	}
	t, err := newTerm(p.lexer.text, found)
	if err != nil {
		return nil, err
	}
	return t, p.advance()
}
