package searchquery

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a part of a query's text.
type token struct {
	kind   tokenKind
	offset int
	// For termToken: the field and operator, which are empty for text, and the value without quotes.
	field, operator, value string
	// quoted means that the value was in quotes, so "*" in it is literal.
	quoted      bool
	valueOffset int
}

type tokenKind int

const (
	termToken tokenKind = iota
	andToken
	orToken
	notToken
	openToken
	closeToken
	endToken
)

// String returns the token's description for error messages.
func (t token) String() string {
	return map[tokenKind]string{
		termToken: "a term", andToken: "AND", orToken: "OR", notToken: "NOT", openToken: `"("`, closeToken: `")"`, endToken: "the end",
	}[t.kind]
}

// operators lists the operators of fields. Longer operators come first, because the first match is
// used.
func operators() []string { return []string{"!=", ">=", "<=", ":", "=", ">", "<"} }

type lexer struct {
	text   string
	offset int
}

func (l *lexer) next() (token, error) {
	l.skipSpace()
	start := l.offset
	if start == len(l.text) {
		return token{kind: endToken, offset: start}, nil
	}
	switch l.text[start] {
	case '(':
		l.offset++
		return token{kind: openToken, offset: start}, nil
	case ')':
		l.offset++
		return token{kind: closeToken, offset: start}, nil
	case '-':
		if r, _ := utf8.DecodeRuneInString(l.text[start+1:]); start+1 < len(l.text) && !unicode.IsSpace(r) && r != ')' {
			l.offset++
			return token{kind: notToken, offset: start}, nil
		}
	case '"':
		value, err := l.quoted()
		return token{kind: termToken, offset: start, value: value, quoted: true, valueOffset: start}, err
	}
	return l.term()
}

// term returns a keyword, or a term that begins with an unquoted word.
func (l *lexer) term() (token, error) {
	start := l.offset
	field, operator := l.fieldAndOperator()
	if operator == "" {
		value, err := l.unquoted()
		switch value {
		case "AND":
			return token{kind: andToken, offset: start}, err
		case "OR":
			return token{kind: orToken, offset: start}, err
		case "NOT":
			return token{kind: notToken, offset: start}, err
		}
		return token{kind: termToken, offset: start, value: value, valueOffset: start}, err
	}
	found := token{kind: termToken, offset: start, field: field, operator: operator, valueOffset: l.offset}
	var err error
	if strings.HasPrefix(l.text[l.offset:], `"`) {
		found.quoted = true
		found.value, err = l.quoted()
		return found, err
	}
	found.value, err = l.unquoted()
	return found, err
}

// fieldAndOperator reads the text up to and including the word's first operator. It reads nothing if
// the word has no operator.
func (l *lexer) fieldAndOperator() (field, operator string) {
	rest := l.text[l.offset:]
	for i, r := range rest {
		if unicode.IsSpace(r) || strings.ContainsRune(`()"`, r) {
			break
		}
		for _, candidate := range operators() {
			if strings.HasPrefix(rest[i:], candidate) {
				l.offset += i + len(candidate)
				return rest[:i], candidate
			}
		}
	}
	return "", ""
}

// unquoted reads the text up to the next space or parenthesis.
func (l *lexer) unquoted() (string, error) {
	start := l.offset
	for l.offset < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[l.offset:])
		if unicode.IsSpace(r) || r == '(' || r == ')' {
			break
		}
		if r == '"' {
			return "", syntaxError(l.text, l.offset, "put the whole value in quotes", "quote inside a word")
		}
		l.offset += size
	}
	return l.text[start:l.offset], nil
}

// quoted reads a text in quotes, in which `\` escapes a quote or a backslash.
func (l *lexer) quoted() (string, error) {
	start := l.offset
	var value strings.Builder
	for i := start + 1; i < len(l.text); i++ {
		switch c := l.text[i]; {
		case c == '"':
			l.offset = i + 1
			return value.String(), l.requireSeparator()
		case c == '\\' && i+1 < len(l.text) && (l.text[i+1] == '"' || l.text[i+1] == '\\'):
			i++
			value.WriteByte(l.text[i])
		default:
			value.WriteByte(c)
		}
	}
	return "", syntaxError(l.text, start, `add a quote (") at the end of the phrase`, "no closing quote")
}

// requireSeparator returns an error unless a space or parenthesis follows a quoted text.
func (l *lexer) requireSeparator() error {
	if l.offset == len(l.text) {
		return nil
	}
	r, _ := utf8.DecodeRuneInString(l.text[l.offset:])
	if unicode.IsSpace(r) || r == '(' || r == ')' {
		return nil
	}
	return syntaxError(l.text, l.offset, "put a space after the quote, or the whole value in quotes",
		"expected a space after the closing quote")
}

func (l *lexer) skipSpace() {
	for l.offset < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[l.offset:])
		if !unicode.IsSpace(r) {
			return
		}
		l.offset += size
	}
}

// quote returns text in the form that the lexer reads as this quoted text.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
