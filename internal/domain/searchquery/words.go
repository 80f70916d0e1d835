package searchquery

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// AppendWords appends the words of text to words, in lower case. A word is a sequence of letters and
// digits. All other characters separate words.
func AppendWords(words []string, text string) []string {
	for word, rest := nextWord(text); word != ""; word, rest = nextWord(rest) {
		words = append(words, strings.ToLower(word))
	}
	return words
}

// nextWord returns the first word of text, with its original case, and the text after it. The word is
// empty if there is none.
func nextWord(text string) (word, rest string) {
	start := 0
	for start < len(text) {
		size, isPart := wordPart(text[start:])
		if isPart {
			break
		}
		start += size
	}
	end := start
	for end < len(text) {
		size, isPart := wordPart(text[end:])
		if !isPart {
			break
		}
		end += size
	}
	return text[start:end], text[end:]
}

// wordPart returns the size of the first character of text, in bytes, and whether the character can be
// part of a word.
func wordPart(text string) (size int, isPart bool) {
	c := text[0]
	if c < utf8.RuneSelf {
		return 1, 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z'
	}
	r, size := utf8.DecodeRuneInString(text)
	return size, r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// wordPattern matches one word. Its text is in lower case. If the pattern is a glob, "*" matches any
// sequence of characters in the word.
type wordPattern struct {
	text string
	glob bool
}

func (p wordPattern) matches(word string) bool {
	if p.glob {
		return matchGlob(p.text, strings.ToLower(word))
	}
	return equalsLower(p.text, word)
}

// equalsLower reports whether the lower-case form of word equals lower. It does not allocate memory for
// ASCII words.
func equalsLower(lower, word string) bool {
	if len(lower) != len(word) {
		return !isASCII(word) && strings.ToLower(word) == lower
	}
	for i := range len(word) {
		c := word[i]
		if c >= utf8.RuneSelf {
			return strings.ToLower(word) == lower
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// phrase is a sequence of consecutive words.
type phrase []wordPattern

// newPhrase returns the words of text. If wildcards is true, words can contain "*".
func newPhrase(text string, wildcards bool) phrase {
	var words phrase
	pattern := ""
	flush := func() {
		if pattern != "" {
			words = append(words, wordPattern{text: strings.ToLower(pattern), glob: strings.Contains(pattern, "*")})
		}
		pattern = ""
	}
	for text != "" {
		size, isPart := wordPart(text)
		if isPart || wildcards && text[0] == '*' {
			pattern += text[:size]
		} else {
			flush()
		}
		text = text[size:]
	}
	flush()
	return words
}

// isIn reports whether text contains the phrase's words one after the other.
func (p phrase) isIn(text string) bool {
	for rest := text; ; {
		word, after := nextWord(rest)
		if word == "" {
			return false
		}
		if p[0].matches(word) && p[1:].isPrefixOf(after) {
			return true
		}
		rest = after
	}
}

func (p phrase) isPrefixOf(text string) bool {
	for _, pattern := range p {
		word, after := nextWord(text)
		if word == "" || !pattern.matches(word) {
			return false
		}
		text = after
	}
	return true
}

// matchGlob reports whether the pattern matches the whole text. "*" matches any sequence of characters.
// matchGlob takes time in proportion to the product of both lengths at most.
func matchGlob(pattern, text string) bool {
	first, rest, found := strings.Cut(pattern, "*")
	if !found {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for {
		part, after, found := strings.Cut(rest, "*")
		if !found {
			return strings.HasSuffix(text, part)
		}
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text, rest = text[i+len(part):], after
	}
}
