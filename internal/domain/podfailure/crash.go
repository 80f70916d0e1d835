package podfailure

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Crash is the last termination of a container with an error.
type Crash struct {
	// Line is the last line of the log of the container that describes an error or, if there is none,
	// the last line, without limit of its length. A program may print its usage after an error. Line
	// is empty if the container does not report the end of its log (terminationMessagePolicy).
	Line     string
	ExitCode int32
	// Count is the number of terminations of the container, including those without an error.
	Count int32
}

// LastCrash returns the last crash of a container. ok is false if its last termination was no error.
func LastCrash(status *corev1.ContainerStatus) (crash Crash, ok bool) {
	last, count := status.State.Terminated, status.RestartCount+1
	if last == nil {
		last, count = status.LastTerminationState.Terminated, status.RestartCount
	}
	if last == nil || last.ExitCode == 0 {
		return Crash{}, false
	}
	return Crash{Line: causeLine(last.Message), ExitCode: last.ExitCode, Count: count}, true
}

func causeLine(log string) string {
	for _, line := range slices.Backward(strings.Split(log, "\n")) {
		if errorText.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return lastLine(log)
}

var (
	// errorText is the text of lines that describe an error.
	errorText = regexp.MustCompile(`(?i)\berr(or)?\b|fatal|panic:|failed|cannot|unknown flag|not defined|^F\d{4} `)
	// logHeader is the header that klog writes before a message.
	logHeader = regexp.MustCompile(`^[IWEF]\d{4} \S+ +\d+ \S+\] `)
	// transientCause is the text of an error that may end without a change of the container, because
	// another server starts.
	transientCause = regexp.MustCompile(`(?i)refused|timed? ?out|deadline|no such host|no route|unavailable|EOF|reset by peer|not ready`)
)

// IsRepeated reports whether a crash has the same cause as an earlier crash of the same container,
// so that another restart cannot help. It compares the last lines of the logs without their time.
func (c Crash) IsRepeated(earlier Crash) bool {
	line := logHeader.ReplaceAllString(c.Line, "")
	return c.Count > earlier.Count && line != "" && line == logHeader.ReplaceAllString(earlier.Line, "") && !transientCause.MatchString(line)
}
