// Package conditions sets status conditions, limits their content, and reports whether a write would
// change anything.
//
// Invariants:
//   - Every type and reason that this project writes is a row of Table.
//   - lastTransitionTime changes only with the status, so it shows how long the current status has
//     lasted.
//   - observedGeneration is stored on every write, so that readers can distinguish a condition for the
//     current spec from a condition for an older spec.
//   - Messages are limited in size, because a condition is written often and everyone who watches the
//     object receives it.
//   - The package has no clock: the caller passes the time.
package conditions

import (
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxMessageBytes is the maximum length of a condition's message, in bytes. Longer messages are
// truncated without splitting a rune, and end with an ellipsis.
const MaxMessageBytes = 1024

const ellipsis = "..."

// Set stores c in conditions and reports whether anything changed, so that the caller can skip a write
// that would change nothing.
//
// c.LastTransitionTime is the current time. It is stored only if the condition is new or its status
// differs from the stored status. c.ObservedGeneration is the generation of the object that c
// describes.
func Set(conditions *[]metav1.Condition, c metav1.Condition) (changed bool) {
	c.Message = LimitMessage(c.Message)
	stored := Get(*conditions, c.Type)
	if stored == nil {
		*conditions = append(*conditions, c)
		return true
	}
	if stored.Status == c.Status {
		c.LastTransitionTime = stored.LastTransitionTime
	}
	if *stored == c {
		return false
	}
	*stored = c
	return true
}

// Get returns the condition of the given type, or nil if there is none. The result points into
// conditions.
func Get(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// Remove deletes the condition of the given type and reports whether it existed.
func Remove(conditions *[]metav1.Condition, conditionType string) (changed bool) {
	before := len(*conditions)
	*conditions = slices.DeleteFunc(*conditions, func(c metav1.Condition) bool { return c.Type == conditionType })
	return len(*conditions) != before
}

// HasStatus reports whether the condition of the given type exists and has the given status.
func HasStatus(conditions []metav1.Condition, conditionType string, status metav1.ConditionStatus) bool {
	c := Get(conditions, conditionType)
	return c != nil && c.Status == status
}

// LimitMessage truncates message to MaxMessageBytes. See Truncate.
func LimitMessage(message string) string { return Truncate(message, MaxMessageBytes) }

// Truncate shortens text to the given number of bytes, which must be at least 8, without splitting a
// rune. Text that was shortened ends with an ellipsis. Bytes that are not UTF-8 are kept.
func Truncate(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	end := bytes - len(ellipsis)
	// A rune has at most four bytes, so it begins at most three bytes earlier.
	for step := 0; step < utf8.UTFMax-1 && !utf8.RuneStart(text[end]); step++ {
		end--
	}
	return text[:end] + ellipsis
}
