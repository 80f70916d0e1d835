package console

import (
	"fmt"
	"time"
)

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
