// Package rawlogs finds log lines of libraries in what a command prints for its user.
package rawlogs

import (
	"regexp"
	"strings"
)

// shapes are the forms of log lines: of klog, of gRPC and the standard library, and of zap.
var shapes = regexp.MustCompile(`^[IWEF][0-9]{4} [0-9:.]+ +[0-9]+ |^[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]+ |^\{"level":|\[core\]|grpc: addrConn`)

// Find returns the lines of a text that are log lines.
func Find(text string) (found []string) {
	for line := range strings.Lines(text) {
		if shapes.MatchString(line) {
			found = append(found, strings.TrimSuffix(line, "\n"))
		}
	}
	return found
}
