// Package console contains the shared parts of the command lines of karmada and karmadactl: color, output
// formats, and the error for an unknown command.
//
// Data is written to standard output, everything else to standard error. Color and redrawn
// lines are used on a terminal only.
package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
)

// Style is the style of the text on one output. The zero value is plain text.
type Style struct {
	terminal bool
	color    bool
}

// NewStyle returns the style of an output. A terminal has colors unless NO_COLOR is set to a
// non-empty value. A terminal of type dumb is treated like a file.
func NewStyle(out io.Writer) Style {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return Style{}
	}
	return NewTerminalStyle(os.Getenv("NO_COLOR") == "")
}

// NewTerminalStyle returns the style of a terminal, with or without colors.
func NewTerminalStyle(color bool) Style { return Style{terminal: true, color: color} }

// IsTerminal reports whether the output is a terminal, so that lines can be redrawn.
func (s Style) IsTerminal() bool { return s.terminal }

// Good colors text about a success.
func (s Style) Good(text string) string { return s.colorize("32", text) }

// Bad colors text about a failure.
func (s Style) Bad(text string) string { return s.colorize("31", text) }

// Warn colors text about a possible problem.
func (s Style) Warn(text string) string { return s.colorize("33", text) }

func (s Style) colorize(color, text string) string {
	if !s.color {
		return text
	}
	return "\033[" + color + "m" + text + "\033[0m"
}

// stepNameWidth is the length of the longest name of a step.
const stepNameWidth = 48

// exactLimit is the duration from which tenths of a second are no longer printed.
const exactLimit = 100 * time.Second

// StepLine returns the line about a completed step: its result, its name and its duration. The
// durations of all lines are one column, aligned at the right.
func (s Style) StepLine(name string, took time.Duration, hasFailed bool) string {
	sign := s.Good("✔")
	if hasFailed {
		sign = s.Bad("✖")
	}
	return fmt.Sprintf("%s %-*s %8s", sign, stepNameWidth, name, formatStepDuration(took))
}

// formatStepDuration formats short durations as seconds, such as 4.4s, and long ones with minutes,
// such as 2m5s.
func formatStepDuration(took time.Duration) string {
	if took.Round(time.Second/10) < exactLimit {
		return fmt.Sprintf("%.1fs", took.Seconds())
	}
	return took.Round(time.Second).String()
}

// ShellWord returns a word for a command in a message, in quotes if a shell would change it.
func ShellWord(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@,+=", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
