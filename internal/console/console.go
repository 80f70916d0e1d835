// Package console contains what the command lines of karmada and karmadactl share: colors, output formats, and the error for an
// unknown command. Only a terminal gets colors and redrawn lines.
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

// Style formats text for one output. The zero value formats plain text.
type Style struct {
	terminal bool
	color    bool
}

// NewStyle returns the style for an output. A terminal gets colors unless $NO_COLOR is set. A terminal of type dumb is treated
// like a file.
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

// exactLimit is the duration above which tenths of a second are not printed.
const exactLimit = 100 * time.Second

// StepLine returns the line for a completed step: a sign for success or failure, the name, and the duration. The durations of all
// lines are right-aligned.
func (s Style) StepLine(name string, took time.Duration, hasFailed bool) string {
	sign := s.Good("✔")
	if hasFailed {
		sign = s.Bad("✖")
	}
	return fmt.Sprintf("%s %-*s %8s", sign, stepNameWidth, name, formatStepDuration(took))
}

// formatStepDuration formats durations below exactLimit as 4.4s, and longer ones as 2m5s.
func formatStepDuration(took time.Duration) string {
	if took.Round(time.Second/10) < exactLimit {
		return fmt.Sprintf("%.1fs", took.Seconds())
	}
	return took.Round(time.Second).String()
}

// ShellWord returns the word as a user must type it in a shell: in quotes if it contains special characters.
func ShellWord(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@,+=", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
