// Package pattern matches the patterns of Lua 5.1. Matching needs constant memory, its recursion is
// bounded by the pattern, and it counts its steps, so that a caller can end a search that would
// take exponential time.
package pattern

import "errors"

// MaxCaptures is the maximum number of captures in a pattern.
const MaxCaptures = 32

// maxRepetitions is the maximum number of items of a pattern with one of the suffixes *, +, - and ?.
// Each of them needs one level of recursion.
const maxRepetitions = 200

// ItemBytes is an upper limit for the memory of a compiled pattern for each byte of its text.
const ItemBytes = 64

// Errors of patterns. The texts are those of Lua.
var (
	errEndsWithEscape  = errors.New("malformed pattern (ends with '%')")
	errMissingBracket  = errors.New("malformed pattern (missing ']')")
	errUnfinished      = errors.New("unfinished capture")
	errInvalidCapture  = errors.New("invalid pattern capture")
	errCaptureIndex    = errors.New("invalid capture index")
	errFrontier        = errors.New("missing '[' after '%f' in pattern")
	errBalance         = errors.New("unbalanced pattern (%b needs two characters)")
	errTooManyCaptures = errors.New("too many captures")
	errTooComplex      = errors.New("pattern too complex (more than 200 repetitions)")
)

type operation uint8

const (
	matchByte     operation = iota // one certain byte
	matchAny                       // any byte
	matchSet                       // a byte of a set
	matchBalance                   // %bxy
	matchFrontier                  // %f[set]
	matchCapture                   // %1: the text of an earlier capture
	matchEnd                       // $ at the end of the pattern
	openCapture
	closeCapture
	capturePosition
)

// item is one element of a pattern.
type item struct {
	operation operation
	// repetition is one of the suffixes *, +, - and ?, or 0.
	repetition byte
	// first and last are the byte to match, or the two bytes of %b.
	first, last byte
	capture     uint8
	set         *set
}

// Pattern is a compiled pattern.
type Pattern struct {
	items    []item
	captures int
	anchored bool
	inline   [12]item
}

// Compile parses a pattern. A ^ at the start is an anchor. Unlike the original implementation of
// Lua, Compile finds every mistake, also in a part of the pattern that a certain subject does not
// reach.
func Compile(text string) (*Pattern, error) {
	if text != "" && text[0] == '^' {
		p, err := compile(text[1:])
		if err != nil {
			return nil, err
		}
		p.anchored = true
		return p, nil
	}
	return compile(text)
}

// CompileUnanchored parses a pattern in which a ^ at the start is an ordinary character. The
// function string.gmatch requires this.
func CompileUnanchored(text string) (*Pattern, error) {
	return compile(text)
}

func compile(text string) (*Pattern, error) {
	p := &Pattern{}
	p.items = p.inline[:0]
	c := compiler{text: text, pattern: p}
	if err := c.compile(); err != nil {
		return nil, err
	}
	return p, nil
}

// Anchored reports whether the pattern matches only at the start of a search.
func (p *Pattern) Anchored() bool { return p.anchored }

// Captures returns the number of captures of the pattern.
func (p *Pattern) Captures() int { return p.captures }

// compiler holds the state of a compilation.
type compiler struct {
	text        string
	position    int
	pattern     *Pattern
	repetitions int
	// open lists the captures that are not closed yet.
	open   [MaxCaptures]uint8
	opened int
}

func (c *compiler) compile() error {
	for c.position < len(c.text) {
		if err := c.next(); err != nil {
			return err
		}
	}
	if c.opened > 0 {
		return errUnfinished
	}
	return nil
}

func (c *compiler) next() error {
	switch char := c.text[c.position]; char {
	case '(':
		return c.openCapture()
	case ')':
		return c.closeCapture()
	case '$':
		if c.position == len(c.text)-1 {
			c.position++
			c.add(item{operation: matchEnd})
			return nil
		}
		c.position++
		return c.addRepeatable(item{operation: matchByte, first: char})
	case '.':
		c.position++
		return c.addRepeatable(item{operation: matchAny})
	case '[':
		set, err := c.parseSet()
		if err != nil {
			return err
		}
		return c.addRepeatable(item{operation: matchSet, set: set})
	case '%':
		return c.escape()
	default:
		c.position++
		return c.addRepeatable(item{operation: matchByte, first: char})
	}
}

func (c *compiler) add(i item) {
	c.pattern.items = append(c.pattern.items, i)
}

// addRepeatable adds an item that matches one byte, with its suffix.
func (c *compiler) addRepeatable(i item) error {
	if c.position < len(c.text) {
		switch suffix := c.text[c.position]; suffix {
		case '*', '+', '-', '?':
			c.position++
			i.repetition = suffix
			if c.repetitions++; c.repetitions > maxRepetitions {
				return errTooComplex
			}
		}
	}
	c.add(i)
	return nil
}

func (c *compiler) openCapture() error {
	if c.pattern.captures == MaxCaptures {
		return errTooManyCaptures
	}
	number := uint8(c.pattern.captures)
	c.pattern.captures++
	c.position++
	if c.position < len(c.text) && c.text[c.position] == ')' {
		c.position++
		c.add(item{operation: capturePosition, capture: number})
		return nil
	}
	c.open[c.opened] = number
	c.opened++
	c.add(item{operation: openCapture, capture: number})
	return nil
}

func (c *compiler) closeCapture() error {
	if c.opened == 0 {
		return errInvalidCapture
	}
	c.position++
	c.opened--
	c.add(item{operation: closeCapture, capture: c.open[c.opened]})
	return nil
}

// escape parses an element that starts with %.
func (c *compiler) escape() error {
	c.position++
	if c.position == len(c.text) {
		return errEndsWithEscape
	}
	char := c.text[c.position]
	c.position++
	switch {
	case char == 'b':
		if c.position+2 > len(c.text) {
			return errBalance
		}
		c.add(item{operation: matchBalance, first: c.text[c.position], last: c.text[c.position+1]})
		c.position += 2
		return nil
	case char == 'f':
		return c.frontier()
	case '0' <= char && char <= '9':
		return c.reference(int(char) - '1')
	}
	if set := classes[char]; set != nil {
		return c.addRepeatable(item{operation: matchSet, set: set})
	}
	return c.addRepeatable(item{operation: matchByte, first: char})
}

// frontier parses %f[set]. The manual of Lua 5.1 does not mention it, but its implementation has it.
// (gopher-lua matches the character f instead.)
func (c *compiler) frontier() error {
	if c.position == len(c.text) || c.text[c.position] != '[' {
		return errFrontier
	}
	set, err := c.parseSet()
	if err != nil {
		return err
	}
	c.add(item{operation: matchFrontier, set: set})
	return nil
}

// reference adds a reference to a capture, which must be closed.
func (c *compiler) reference(capture int) error {
	if capture < 0 || capture >= c.pattern.captures {
		return errCaptureIndex
	}
	for _, open := range c.open[:c.opened] {
		if int(open) == capture {
			return errCaptureIndex
		}
	}
	c.add(item{operation: matchCapture, capture: uint8(capture)})
	return nil
}
