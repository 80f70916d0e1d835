package console

import (
	"slices"
	"strings"
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
		switch distance := distance(typed, name); {
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

// distance returns how many characters must be inserted, removed, replaced or
// swapped with their neighbour to make one word of the other.
func distance(a, b string) int {
	beforeLast, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
		beforeLast, last = last, row
	}
	return last[len(b)]
}
