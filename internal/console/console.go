// Package console answers: how does a program talk to the person at a terminal?
// It holds what the command lines of karmada and karmadactl share: colour, formats
// of output, and the error of a command that does not exist.
//
// Data goes to standard output, everything else to standard error. Colour and lines
// that are drawn again appear on a terminal only.
package console

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Style is how text looks on one output. The zero value is plain text.
type Style struct {
	terminal bool
	colour   bool
}

// StyleOf returns the style of an output. A terminal has colours unless NO_COLOR is
// set to any text; a terminal of type dumb is like a file.
func StyleOf(out io.Writer) Style {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return Style{}
	}
	return TerminalStyle(os.Getenv("NO_COLOR") == "")
}

// TerminalStyle returns the style of a terminal, with colours or without.
func TerminalStyle(colour bool) Style { return Style{terminal: true, colour: colour} }

// Terminal reports whether lines can be drawn again.
func (s Style) Terminal() bool { return s.terminal }

// Good marks text about what is as wanted.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Bad marks text about what failed.
func (s Style) Bad(text string) string { return s.paint("31", text) }

// Warn marks text about what may be unwanted.
func (s Style) Warn(text string) string { return s.paint("33", text) }

func (s Style) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\033[" + colour + "m" + text + "\033[0m"
}
