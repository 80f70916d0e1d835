// Package spelling finds the known name that a user probably meant by a misspelled name. It imports no other package, so that the
// domain and the command line can share it.
package spelling

import "strings"

// Similar reports whether a and b are equal, or one may be a misspelling of the other. It ignores case.
func Similar(a, b string) bool {
	_, similar := misspellingDistance(strings.ToLower(a), strings.ToLower(b))
	return similar
}

// Nearest returns the candidate that is most similar to name, or "" if none is similar. Of equally similar candidates, it returns
// the first in byte order.
func Nearest(name string, candidates []string) string {
	nearest, best := "", 0
	folded := strings.ToLower(name)
	for _, candidate := range candidates {
		d, similar := misspellingDistance(folded, strings.ToLower(candidate))
		if similar && (nearest == "" || d < best || d == best && candidate < nearest) {
			nearest, best = candidate, d
		}
	}
	return nearest
}

// misspellingDistance returns the distance of a and b, and reports whether it is small enough for a misspelling. If the lengths
// differ too much, it does not compute the distance, because long names may be compared with the names in many policies.
func misspellingDistance(a, b string) (distance int, similar bool) {
	limit := maxEdits(a, b)
	if abs(len(a)-len(b)) > limit {
		return 0, false
	}
	distance = Distance(a, b)
	return distance, distance <= limit
}

// maxEdits returns the maximum number of edits in a misspelling: one for every four characters, and at least one.
func maxEdits(a, b string) int { return max(1, max(len(a), len(b))/4) }

// Distance returns the smallest number of insertions, deletions, replacements and swaps of
// adjacent bytes that turn a into b. It compares bytes, because names in Kubernetes are ASCII.
func Distance(a, b string) int {
	beforeLast, last, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(last[j]+1, current[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], beforeLast[j-2]+1)
			}
		}
		beforeLast, last, current = last, current, beforeLast
	}
	return last[len(b)]
}

func abs(n int) int { return max(n, -n) }
