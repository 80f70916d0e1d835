package searchquery

import "strings"

// WordPattern is the Word of a Condition with IsPattern, prepared to be compared with many words.
type WordPattern struct{ text string }

// NewWordPattern returns the pattern for a Condition's Word.
func NewWordPattern(text string) WordPattern {
	parts := strings.Split(text, "*")
	kept := parts[:1]
	for i, part := range parts[1:] {
		// Consecutive wildcards are equivalent to one wildcard.
		if part != "" || i == len(parts)-2 {
			kept = append(kept, part)
		}
	}
	return WordPattern{text: strings.Join(kept, "*")}
}

// Prefix returns the prefix that all matching words have.
func (p WordPattern) Prefix() string {
	prefix, _, _ := strings.Cut(p.text, "*")
	return prefix
}

// IsPrefix reports whether the pattern matches all words that start with Prefix.
func (p WordPattern) IsPrefix() bool { return p.text == p.Prefix()+"*" }

// Matches reports whether the pattern matches the word. Both must be in lower case. It takes time in
// proportion to the product of their lengths at most.
func (p WordPattern) Matches(word string) bool { return matchGlob(p.text, word) }
