package searchquery

import "strings"

// WordPattern is the text of a Condition with IsPattern, prepared for many words.
type WordPattern struct{ text string }

// NewWordPattern returns the pattern of a Condition.
func NewWordPattern(text string) WordPattern {
	parts := strings.Split(text, "*")
	kept := parts[:1]
	for i, part := range parts[1:] {
		// Wildcards that follow each other are one wildcard.
		if part != "" || i == len(parts)-2 {
			kept = append(kept, part)
		}
	}
	return WordPattern{text: strings.Join(kept, "*")}
}

// Prefix returns the start of all words that the pattern matches.
func (p WordPattern) Prefix() string {
	prefix, _, _ := strings.Cut(p.text, "*")
	return prefix
}

// IsPrefix reports whether the pattern matches all words that start with Prefix.
func (p WordPattern) IsPrefix() bool { return p.text == p.Prefix()+"*" }

// Matches reports whether the pattern matches a word. Both are in lower case. It takes time in
// proportion to the lengths of the pattern and the word.
func (p WordPattern) Matches(word string) bool { return matchGlob(p.text, word) }
