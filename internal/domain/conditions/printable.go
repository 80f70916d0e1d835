package conditions

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns text on one line without control characters: a terminal would obey
// them. Each run of spaces, newlines and tabs becomes one space, each other character
// that is not printable a question mark. Text that is printable is returned as it is.
func Printable(text string) string {
	if isPrintable(text) {
		return text
	}
	var clean strings.Builder
	clean.Grow(len(text))
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space && clean.Len() > 0 {
			clean.WriteByte(' ')
		}
		space = false
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '?'
		}
		clean.WriteRune(r)
	}
	return clean.String()
}

func isPrintable(text string) bool {
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
