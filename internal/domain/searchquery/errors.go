package searchquery

import (
	"fmt"
	"unicode/utf8"
)

// SyntaxError describes what is wrong with a query's text.
type SyntaxError struct {
	// Column is the position of the wrong part, in characters. The first character is in column 1.
	Column int
	// Problem describes what is wrong and what was expected.
	Problem string
	// Hint describes how the user can correct the query. It can be empty.
	Hint string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	text := fmt.Sprintf("query, column %d: %s", e.Column, e.Problem)
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

// syntaxError returns an error about the part of text that begins at the given byte offset.
func syntaxError(text string, offset int, hint, format string, args ...any) *SyntaxError {
	return &SyntaxError{
		Column:  utf8.RuneCountInString(text[:min(offset, len(text))]) + 1,
		Problem: fmt.Sprintf(format, args...),
		Hint:    hint,
	}
}

// maxQuoted is the maximum length of user input that an error repeats, in characters.
const maxQuoted = 60

// shorten returns text, truncated to at most limit characters.
func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:limit-1]) + "…"
}
