// Package spelling answers: which known name did the user probably mean?
//
// Invariants: the answer depends on the names alone, not on their order; a name
// that differs too much from all known names has no answer.
package spelling

import "strings"

// Similar reports whether two names differ so little that one may be a
// misspelling of the other. Case does not count. Equal names are similar.
func Similar(a, b string) bool {
	_, similar := edits(strings.ToLower(a), strings.ToLower(b))
	return similar
}

// Nearest returns the candidate that is most similar to the name, and "" when none
// is similar. Of equally similar candidates it returns the first in byte order.
func Nearest(name string, candidates []string) string {
	nearest, best := "", 0
	folded := strings.ToLower(name)
	for _, candidate := range candidates {
		d, similar := edits(folded, strings.ToLower(candidate))
		if similar && (nearest == "" || d < best || d == best && candidate < nearest) {
			nearest, best = candidate, d
		}
	}
	return nearest
}

// edits returns the distance of two names, and whether it is that of a misspelling.
// Lengths that differ too much decide at once: the names of objects may be long, and the
// policies that they are compared with many.
func edits(a, b string) (distance int, similar bool) {
	limit := tolerance(a, b)
	if abs(len(a)-len(b)) > limit {
		return 0, false
	}
	distance = Distance(a, b)
	return distance, distance <= limit
}

// tolerance is the number of edits that still count as a misspelling: one in four
// characters, and at least one.
func tolerance(a, b string) int { return max(1, max(len(a), len(b))/4) }

// Distance is the least number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b, in bytes: names of Kubernetes are ASCII.
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
