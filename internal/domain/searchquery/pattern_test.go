package searchquery

import (
	"testing"

	"pgregory.net/rapid"
)

func TestWordPattern(t *testing.T) {
	tests := map[string]struct {
		pattern, prefix string
		isPrefix        bool
	}{
		"a wildcard at the end matches all words with the prefix": {"ngi*", "ngi", true},
		"wildcards that follow each other are one":                {"ngi***", "ngi", true},
		"a wildcard matches all words":                            {"*", "", true},
		"a wildcard in the middle has a prefix":                   {"n*x", "n", false},
		"two wildcards are not a prefix":                          {"n*g*", "n", false},
		"a wildcard at the start has no prefix":                   {"**inx", "", false},
		"a text without wildcard matches only itself":             {"nginx", "nginx", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pattern := NewWordPattern(test.pattern)
			if pattern.Prefix() != test.prefix || pattern.IsPrefix() != test.isPrefix {
				t.Errorf("prefix %q, is prefix: %t", pattern.Prefix(), pattern.IsPrefix())
			}
		})
	}
}

func TestAPreparedPatternMatchesTheSameWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern, word := rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "pattern"), rapid.StringMatching(`[ab]{0,6}`).Draw(t, "word")
		if got, want := NewWordPattern(pattern).Matches(word), matchGlob(pattern, word); got != want {
			t.Fatalf("%q matches %q: %t, want %t", pattern, word, got, want)
		}
	})
}
