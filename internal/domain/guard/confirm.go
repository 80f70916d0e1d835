package guard

import "time"

// IsConfirmed reports whether a user confirmed the deletion of a Work. began is the time at which
// the deletion began. text is the value of the annotation on the Cluster: an RFC 3339 time, which
// confirms every deletion that began at or before that time. Any other text confirms nothing.
func IsConfirmed(text string, began time.Time) bool {
	until, err := time.Parse(time.RFC3339, text)
	return err == nil && !began.After(until)
}
