package console

import (
	"slices"
	"strings"

	"karmada.io/karmada/internal/domain/spelling"
)

// maxSuggestions is the maximum number of names that an error suggests.
const maxSuggestions = 3

// minPrefix is the minimum length of a prefix that selects names.
const minPrefix = 2

// similarNames returns the names that a mistyped one may mean, by ascending distance and then
// by name: those that begin with it, and those that differ by one character per three, at least
// by one. Two swapped neighbors count as one difference.
func similarNames(typed string, names []string) []string {
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
	return found[:min(len(found), maxSuggestions)]
}
