package console

import (
	"slices"
	"strings"

	"karmada.io/karmada/internal/domain/spelling"
)

// maxNearest is how many names an error proposes.
const maxNearest = 3

// minPrefix is how many characters make the begin of a name recognizable.
const minPrefix = 2

// nearest returns the names that a mistyped one may mean, the nearest first, equally
// near ones sorted: those that begin with it, and those that differ by one character
// of each three, at least by one. Two neighbours in the wrong order count as one
// difference.
func nearest(typed string, names []string) []string {
	typed = strings.ToLower(typed)
	limit := max(1, len(typed)/3)
	distances := map[string]int{}
	for _, name := range names {
		switch distance := spelling.Distance(typed, name); {
		case len(typed) >= minPrefix && strings.HasPrefix(name, typed):
			distances[name] = 0
		case distance <= limit && distance < len(typed):
			distances[name] = distance
		}
	}
	var found []string
	for name := range distances {
		found = append(found, name)
	}
	slices.SortFunc(found, func(a, b string) int {
		if distances[a] != distances[b] {
			return distances[a] - distances[b]
		}
		return strings.Compare(a, b)
	})
	return found[:min(len(found), maxNearest)]
}
