package conditions

import (
	"testing"
	"unicode"
)

func TestPrintable(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain text stays":                                        {"cluster is ready", "cluster is ready"},
		"letters of other languages stay":                         {"größer 東京", "größer 東京"},
		"newlines become spaces":                                  {"one\n\n  two\r\n", "one two"},
		"escape characters become a question mark":                {"\x1b[2J\x1b]0;owned\a", "?[2J?]0;owned?"},
		"bytes that are not UTF-8 become a question mark":         {"a\xffb", "a?b"},
		"bidirectional control characters become a question mark": {"a\u202eb", "a?b"},
		"8-bit control characters become a question mark":         {"a\u009b2J", "a?2J"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ToPrintable(tc.text); got != tc.want {
				t.Errorf("Printable(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[0m")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range ToPrintable(text) {
			if !unicode.IsPrint(r) {
				t.Errorf("Printable(%q) has %q", text, r)
			}
		}
	})
}
