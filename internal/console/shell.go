package console

import (
	"strings"
	"unicode"
)

// ShellWord returns a word for a command in a message, in quotes if a shell would change it.
func ShellWord(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@,+=", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
