package conditions

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ToPrintable returns text on one line without control characters, which a terminal would execute. It
// replaces each run of spaces, newlines and tabs by one space, and each other character that is not
// printable by a question mark. Printable text is returned unchanged.
func ToPrintable(text string) string {
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
