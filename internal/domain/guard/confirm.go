package guard

import "time"

// Confirmed tells whether a user wants the deletion of a Work that began at the
// given time. The text is that of the annotation on the Cluster: a time as of RFC
// 3339, which confirms every deletion that began by then and none that begins
// later. Anything else confirms nothing.
func Confirmed(text string, began time.Time) bool {
	until, err := time.Parse(time.RFC3339, text)
	return err == nil && !began.After(until)
}
