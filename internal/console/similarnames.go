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

// similarNames returns the names that the user may have meant by typed, at most maxSuggestions.
// These are the names that begin with typed, and the names that differ from typed in few
// characters: in at most a third of the characters of typed, but in one if typed is short. The
// most similar names are first. Equally similar names are in alphabetical order. Two swapped
// neighboring characters count as one difference.
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
